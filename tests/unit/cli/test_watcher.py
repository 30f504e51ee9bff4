import json
import time

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


@pytest.fixture
def pauses(coordinator: ScriptedCoordinator) -> list[float | None]:
    """What the coordinator was told, last of all what holds."""
    told: list[float | None] = [None]

    def pause(until: float | None) -> float | None:
        told.append(until)
        return until

    coordinator.methods["SetWatcherPause"] = pause
    coordinator.methods["QueryConfigValues"] = lambda names: [told[-1]]
    return told


def test_it_is_told_to_pause_and_to_go_on(run: Run, pauses: list[float | None]) -> None:
    assert run("gnt-cluster watcher info").out == "The watcher works.\n"
    ran = run("gnt-cluster watcher pause 1h")
    assert (ran.code, ran.out[:25]) == (0, "The watcher pauses until ")
    assert pauses[-1] == pytest.approx(time.time() + 3600, abs=60)
    assert run("gnt-cluster watcher info").out == ran.out
    assert json.loads(run("gnt-cluster watcher info --json").out) == {"paused_until": pauses[-1]}
    assert run("gnt-cluster watcher continue").out == "The watcher works.\n"
    assert pauses[-1] is None


def test_a_pause_that_is_over_is_none(run: Run, pauses: list[float | None]) -> None:
    pauses.append(time.time() - 1)
    assert run("gnt-cluster watcher info").out == "The watcher works.\n"
    assert json.loads(run("gnt-cluster watcher info --json").out) == {"paused_until": None}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("pause", "“pause” needs to know for how long, as in “pause 1h”."),
        ("continue 1h", "“continue” takes no duration."),
        ("info 1h", "“info” takes no duration."),
        ("pause soon", "“soon” is no span of time"),
        ("pause 0m", "“0m” is no time at all."),
        ("rest", "invalid choice: 'rest'"),
        ("", "The following arguments are required: action"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Run, pauses: list[float | None], words: str, told: str
) -> None:
    ran = run(f"gnt-cluster watcher {words}")
    assert ran.code == 2
    assert told in ran.err
    assert pauses == [None]
