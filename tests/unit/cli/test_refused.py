"""What operators of Ganeti type and is not obeyed: refused by name, or nothing to obey."""

import pytest

from coordinator.cli.refused import ANY, OPTIONS
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

EVERY = [(command, flag) for command, options in OPTIONS.items() for flag in options]


@pytest.mark.parametrize(("command", "flag"), EVERY)
def test_each_is_refused_with_what_to_do_or_asks_for_nothing(
    run: Run, coordinator: ScriptedCoordinator, command: str, flag: str
) -> None:
    refused = OPTIONS[command][flag]
    if ANY in refused.harmless:
        return
    ran = run(f"{command} {flag}=something")
    assert ran.code
    assert f"{flag} is Ganeti's and not obeyed. {refused.why}" in ran.err
    assert coordinator.submitted == []


def test_what_asks_for_nothing_is_taken(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job()
    words = "--prealloc-wipe-disks=yes --user-shutdown=no --drbd-usermode-helper=/bin/true --force"
    assert run(f"gnt-cluster modify {words} --max-running-jobs 15").code == 0
    (submitted,) = coordinator.submitted
    assert submitted[0]["max_running_jobs"] == 15
    assert run("gnt-cluster info --roman").code == 0


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("gnt-cluster upgrade --to 3.1", "Nodes are upgraded one after the other"),
        ("gnt-debug metad echo hello", "reads its NoCloud data"),
        ("gnt-debug wconfd listalllocks", "“gnt-debug locks” lists them"),
    ],
)
def test_a_command_that_is_not_there_tells_what_is_done_instead(
    run: Run, line: str, instead: str
) -> None:
    ran = run(line)
    name = " ".join(line.split()[:2])
    assert (ran.code, ran.out) == (2, "")
    assert f"“{name}” is Ganeti's and not there. " in ran.err
    assert instead in ran.err
