"""Our test of the job queue, on a cluster of ours; Ganeti's is among all commands of Debian's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.cli.main import guarded, run_area
from coordinator.jobs import submission
from coordinator.operations.test import job_queue
from tests.diff.debian_ganeti import served_cluster

FIRST, LAST = "Jobs that make no sense are refused.", "The job queue keeps what it promises."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Have a cluster answer where our commands look, below a folder."""
    folder = tmp_path_factory.mktemp("queue")
    with served_cluster(folder) as served:
        ours = folder / "run/gantry/coordinator/luxi.sock"
        ours.parent.mkdir(parents=True)
        ours.symlink_to(served.root / "var/run/ganeti/socket/ganeti-master")
        yield folder


async def nothing() -> None:
    """Go well."""


def test_the_queue_is_held_to_its_promises_and_keeps_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GANTRY_ROOT", str(folder))
    assert guarded(lambda: run_area("gnt-debug", ["test-jobqueue", "--priority=high"])) == 0
    told = capsys.readouterr()
    assert told.err == ""
    lines = told.out.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (7, FIRST, LAST)


@pytest.mark.parametrize(
    ("where", "name", "fault", "told"),
    [
        (submission, "AT_SUBMISSION", range(-20, 20), "A job of priority -20 was taken by Submit"),
        (job_queue, "_fail", nothing, "ended as: ['success']; it has to be ['error']"),
        (job_queue, "MESSAGE_PREFIX", "test: ", "said so many messages: 0; it has to be 1"),
    ],
    ids=["any priority", "no failure", "no messages"],
)
def test_a_queue_that_does_not_keep_them_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    where: object, name: str, fault: object, told: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("GANTRY_ROOT", str(folder))
    monkeypatch.setattr(where, name, fault)
    assert guarded(lambda: run_area("gnt-debug", ["test-jobqueue"])) == 1
    ran = capsys.readouterr()
    assert told in ran.err
    assert LAST not in ran.out
