"""The file of ``gnt-instance batch-create``."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest
from coordinator.cli.batch import read_instances
from coordinator.cli.submit import _is_lacking


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


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"“nowhere” cannot be read: .*No such file"):
        read_instances("nowhere")


@pytest.mark.parametrize(
    ("result", "is_lacking"),
    [
        (None, False), (True, False), (False, True), (["alpha"], False), ({"kind": "ssh"}, False),
        ({"jobs": []}, False), ({"jobs": [[True, 3]], "failed": []}, False),
        ({"jobs": [[True, 3], [False, "drained"]]}, True),
        ({"jobs": [[True, 3]], "failed": ["web2"]}, True),
    ],
)  # fmt: skip
def test_what_was_left_undone_shows_in_the_exit_code(result: Any, is_lacking: bool) -> None:
    assert _is_lacking(result) is is_lacking
