"""What chaos in the lab decides and concludes, as far as it takes no node."""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.disks import diagnosis
from coordinator.disks.diagnosis import MirrorState
from tests.lab.chaos import listen
from tests.lab.chaos.operators import (
    ANSWERS,
    MENDED_BY,
    NAMES,
    find_master,
    last_words,
    left_on,
)
from tests.lab.chaos.record import Record
from tests.lab.chaos.schedule import GREAT, Order, Trouble, What, rounds
from tests.support.sequence import SECTOR, check, make_record

NODES = ("alpha", "beta", "gamma")


def test_a_seed_repeats_what_happens_and_another_one_does_not() -> None:
    def first(seed: int) -> list[object]:
        return list(itertools.islice(rounds(seed, NODES), 20))

    assert first(7) == first(7)
    assert first(7) != first(8)


@pytest.mark.parametrize("seed", range(20))
def test_each_round_takes_one_great_thing_away_and_gives_it_back(seed: int) -> None:
    for played in itertools.islice(rounds(seed, NODES), 20):
        troubles = [event.what for event in played if isinstance(event.what, Trouble)]
        great = [trouble for trouble in troubles if trouble.what in GREAT]
        assert len(great) == 1
        assert great[0].seconds > 0
        assert any(isinstance(event.what, Order) for event in played)
        times = [event.at_s for event in played]
        assert times == sorted(times)


def test_every_great_trouble_comes_before_one_comes_again() -> None:
    def great(events: tuple[object, ...]) -> What:
        whats = [event.what.what for event in events if isinstance(event.what, Trouble)]  # type: ignore[attr-defined]
        return next(what for what in whats if what in GREAT)

    seen = [great(each) for each in itertools.islice(rounds(3, NODES), 2 * len(GREAT))]
    assert set(seen[: len(GREAT)]) == set(seen[len(GREAT) :]) == set(GREAT)


def test_old_copies_are_deleted_where_a_job_has_told_of_them_and_no_others() -> None:
    said = "The old copy of disk 0 is left on gamma: Node gamma refuses connections."
    found = (
        "the volume gantry/a is left over of the disk b; “gnt-node remove-leftovers gamma” "
        "deletes it\n"
        "the volume gantry/c is left over of the disk d; “gnt-node remove-leftovers beta” "
        "deletes it"
    )
    assert left_on(said, found) == ["gamma"]
    assert left_on("", found) == []
    assert left_on(said, "") == []


def test_who_answers_is_master_whatever_one_that_was_given_up_takes_itself_for() -> None:
    told = {"alpha": (False, "alpha"), "beta": (True, "beta"), "gamma": (False, "beta")}

    def ask(name: str, line: str) -> tuple[bool, str]:
        answers, names = told[name]
        return {ANSWERS: (answers, ""), NAMES: (True, names)}[line]

    assert find_master(NODES, ask) == "beta"
    told["beta"] = (False, "beta")  # its coordinator has just been killed
    assert find_master(NODES[1:], ask) == "beta"
    assert find_master(NODES[2:], ask) is None


def test_a_guest_that_goes_back_behind_what_it_told_has_lost_something() -> None:
    record = Record()
    for line in ("web start 0 a/1/0", "web count 100", "web start 99 a/1/900"):
        record.hear(line)
    (lost,) = record.lost
    assert "web went on from 99 after it had told 100" in lost


def test_what_is_told_again_after_a_broken_connection_is_no_loss() -> None:
    record = Record()
    for line in ("web start 0 a/1/0", "web count 100", "web start 0 a/1/0", "web count 100"):
        record.hear(line)
    assert record.lost == []
    assert record.told["web"] == 100


def test_a_copy_without_what_was_told_is_found() -> None:
    record = Record()
    copy = b"\0" * SECTOR + b"".join(make_record(number, 1) for number in (1, 2, 3))
    found = check(copy.ljust(1 << 20, b"\0"))
    assert record.check("web", 3, "a copy", found) == []
    (line,) = record.check("web", 4, "a copy", found)
    assert "whole up to 3; it had told 4" in line


def test_listening_tells_starts_and_the_newest_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listen.tell(
        "web", "boot/7", 5, b"going on from 0000000A\n0000000B\n0000000C\ngoing on from 0C\n"
    )
    assert capsys.readouterr().out.splitlines() == ["web start 10 boot/7/5", "web count 12"]


def test_what_is_broken_is_mended_by_the_command_that_verify_names_for_it() -> None:
    source = inspect.getsource(diagnosis)
    for state, command in MENDED_BY.items():
        assert state in set(MirrorState)
        assert command in source


def test_what_runs_on_nodes_needs_nothing_that_they_do_not_have() -> None:
    lab = Path(listen.__file__).parents[1]
    for program in (lab / "probe.py", lab / "chaos/listen.py"):
        line = f"import runpy; runpy.run_path({str(program)!r})"
        words = (sys.executable, "-I", "-S", "-c", line)
        subprocess.run(words, check=True)  # noqa: TID251 -- there is no loop to block here


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("“ssh … “x”” ended with 4: * stop it\nFailure: It is on beta;\n  “y” ends it.\n",
         "It is on beta; “y” ends it."),
        ("“ssh … “x”” ended with 255: no route\n", "ended with 255: no route"),
        ("one\ntwo\n", "two"),
    ],
)  # fmt: skip
def test_why_an_order_was_refused_is_told_as_a_whole(said: str, words: str) -> None:
    assert last_words(said) == words
