"""The file of ``gnt-instance batch-create``."""

import os
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest
from coordinator.cli.batch import read_instances
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


def test_the_file_is_a_list_of_objects(tmp_path: Path) -> None:
    file = tmp_path / "instances.json"
    file.write_text('[{"instance_name": "web1"}]')
    assert read_instances(str(file)) == [{"instance_name": "web1"}]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[" * 100_000, "\udcff"])
def test_any_other_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "instances.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidRequest, match=r"instances\.json"):
        read_instances(str(file))


def test_standard_input_is_called_so(tmp_path: Path) -> None:
    with (tmp_path / "typed").open("w+b") as file:
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            with pytest.raises(InvalidRequest, match=r"^Standard input cannot be read: Expecting"):
                read_instances("-")
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"“nowhere” cannot be read: No such file"):
        read_instances("nowhere")


@pytest.mark.parametrize(
    ("result", "code", "told"),
    [
        (None, 0, ""), (True, 0, ""), (False, 1, ""), (["alpha"], 0, ""), ({"kind": "ssh"}, 0, ""),
        ({"jobs": []}, 0, ""), ({"jobs": [], "failed": []}, 0, ""),
        ([{"severity": "WARNING"}], 0, ""), ([{"severity": "ERROR"}], 1, ""),
        ({"jobs": [[False, "The queue is drained."]]}, 1, "Failure: The queue is drained.\n"),
        ({"jobs": [], "failed": ["web2"]}, 6, "Failure: No node was found for web2.\n"),
        (
            {"jobs": [], "failed": ["web1", "web2", "web3"]}, 6,
            "Failure: No node was found for web1, web2 and web3.\n",
        ),
    ],
)  # fmt: skip
def test_what_was_left_undone_is_told_and_shows_in_the_exit_code(
    run: Run, coordinator: ScriptedCoordinator, result: Any, code: int, told: str
) -> None:
    coordinator.script_job(result=result)
    assert run("gnt-debug delay 1") == (code, "", told)
