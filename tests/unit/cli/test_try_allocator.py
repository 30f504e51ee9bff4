"""``gnt-debug iallocator`` asks as its words say, and prints the text for programs."""

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("web1", {"name": "web1"}),
        ("--dry-run --priority=high web1", {"name": "web1", "dry_run": True, "priority": -10}),
        (
            "--dir out -I ours -m allocate --memory 1G -p 2 --disks 1G,2048 --nics auto//br7 "
            "-t plain -o debian --tags a,b --spindle-use 3 new",
            {"name": "new", "direction": "out", "iallocator": "ours", "mode": "allocate",
             "memory": 1024, "vcpus": 2, "disks": ["1G", "2048"], "nics": ["auto//br7"],
             "disk_template": "plain", "os": "debian", "tags": ["a", "b"], "spindle_use": 3},
        ),
        (
            "-m node-evacuate --evac-mode primary-only web1",
            {"name": "web1", "mode": "node-evacuate", "evac_mode": "primary-only"},
        ),
        (
            "-m change-group --target-groups attic,cellar web1",
            {"name": "web1", "mode": "change-group", "target_groups": ["attic", "cellar"]},
        ),
    ],
)  # fmt: skip
def test_words_become_a_question_and_the_answer_is_printed_as_it_is(
    run: Run, coordinator: ScriptedCoordinator, words: str, asked: dict[str, object]
) -> None:
    coordinator.script_job(result='{"version": 2}')
    ran = run(f"gnt-debug iallocator {words}")
    assert (ran.code, ran.out) == (0, '{"version": 2}\n')
    ((operation,),) = coordinator.submitted
    operation.pop("reason", None)
    assert operation == {"OP_ID": "OP_TEST_ALLOCATOR"} | asked


@pytest.mark.parametrize(
    "words", ["", "a b", "--dir up web1", "-m dance web1", "--memory lots web1", "-p many web1"]
)
def test_words_that_make_no_question_are_refused(
    run: Run, coordinator: ScriptedCoordinator, words: str
) -> None:
    assert run(f"gnt-debug iallocator {words}").code == 2
    assert coordinator.submitted == []
