"""The file of ``gnt-instance batch-create``."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest
from coordinator.cli.batch import OF
from coordinator.cli.json_file import read_objects
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


def test_the_file_is_a_list_of_objects(tmp_path: Path) -> None:
    file = tmp_path / "instances.json"
    file.write_text('[{"instance_name": "web1"}]')
    assert read_objects(str(file), OF) == [{"instance_name": "web1"}]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[" * 100_000, "\udcff"])
def test_any_other_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "instances.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidRequest, match=r"instances\.json"):
        read_objects(str(file), OF)


def test_standard_input_is_called_so(tmp_path: Path) -> None:
    with (tmp_path / "typed").open("w+b") as file:
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            with pytest.raises(
                InvalidRequest, match=r"^Standard input cannot be read: it is no JSON"
            ):
                read_objects("-", OF)
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"“nowhere” cannot be read: No such file"):
        read_objects("nowhere", OF)


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


def test_jobs_are_submitted_from_files(
    run: Run, coordinator: ScriptedCoordinator, tmp_path: Path
) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text('[{"OP_ID": "OP_TEST_DELAY", "duration": 0}, {"OP_ID": "OP_GROUP_ADD"}]')
    other.write_text('[{"OP_ID": "OP_TAGS_GET"}]')
    coordinator.script_job()
    ran = run(f"gnt-debug submit-job --priority high --op-repeat 2 {one} {other}")
    assert ran.code == 0, ran.err
    submitted = [[op["OP_ID"] for op in job] for job in coordinator.submitted]
    assert submitted == [["OP_TEST_DELAY", "OP_GROUP_ADD"] * 2, ["OP_TAGS_GET"] * 2]
    assert all(op["priority"] == -10 for job in coordinator.submitted for op in job)
    coordinator.submitted.clear()
    assert run(f"gnt-debug submit-job --submit --job-repeat 3 {other}").code == 0
    assert len(coordinator.submitted) == 3


def test_jobs_that_are_submitted_one_by_one_do_not_keep_one_another_back(
    run: Run, coordinator: ScriptedCoordinator, tmp_path: Path
) -> None:
    file = tmp_path / "job.json"
    file.write_text('[{"OP_ID": "OP_TEST_DUMMY"}, {"OP_ID": "OP_TEST_DUMMY"}]')
    calls: list[Any] = []

    def submit(job: Any) -> int:
        calls.append(job)
        if len(calls) == 2:
            raise Conflict("The second job is refused.")
        return 40 + len(calls)

    coordinator.script_job()
    coordinator.methods["SubmitJob"] = submit
    ran = run(f"gnt-debug submit-job --each --timing-stats --job-repeat 3 {file}")
    assert (ran.code, len(calls)) == (4, 3)
    assert ran.err == "Failure: The second job is refused.\n"
    shapes = [re.sub(r"\d+\.\d{4}$", "S", line) for line in ran.out.splitlines()[-5:]]
    assert shapes == ["C:op        6", "C:job       3", "T:submit S", "T:exec   S", "T:total  S"]


@pytest.mark.parametrize("words", ["--op-repeat 0", "--job-repeat many", "--op-repeat -1"])
def test_jobs_are_not_repeated_nonsensically(run: Run, words: str) -> None:
    assert run(f"gnt-debug submit-job {words} x.json").code == 2


def test_a_file_of_something_else_is_no_job(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text('[{"OP": 1}]')
    ran = run(f"gnt-debug submit-job {file}")
    assert ran.code == 2
    assert "is not a JSON list of operations" in ran.err
