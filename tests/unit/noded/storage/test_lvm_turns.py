"""Who changes several volume groups takes them in one order, so that nobody waits for ever."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from common.execute import Finished
from common.names import MiB
from noded.storage.lvm import lvm
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import NewVolume, Volume
from tests.support.clock import simulate
from tests.unit.noded.storage.lvm_program import Lvm, row, volume

GROUPS = ("fast", "slow")
LOOK_S = 1.0


class TwoGroups(Lvm):
    """LVM with two volumes in each of two groups; it takes a second to look at them."""

    async def execute(self, *argv: str, timeout_s: float, stdin: bytes | None = None) -> Finished:
        if argv[1] == "fullreport":
            await asyncio.sleep(LOOK_S)
        return await super().execute(*argv, timeout_s=timeout_s, stdin=stdin)

    def _report(self) -> bytes:
        (of_one,) = json.loads(super()._report())["report"]
        reports = [
            of_one
            | {"vg": [of_one["vg"][0] | {"vg_name": group}]}
            | {"lv": [row(volume(number, group)) for number in range(3)]}
            for group in GROUPS
        ]
        return json.dumps({"report": reports}).encode()


@pytest.fixture
def two_groups(monkeypatch: pytest.MonkeyPatch) -> TwoGroups:
    program = TwoGroups()
    monkeypatch.setattr(lvm, "execute", program.execute)
    return program


def at_once(*works: Callable[[LinuxVolumes], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        volumes = LinuxVolumes()
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work(volumes))

    simulate(scenario())


def aside(number: int, group: str) -> tuple[Volume, Volume]:
    """Return a volume, and what it is to be called."""
    there = volume(number, group)
    place = structs.replace(there.place, name=f"{there.place.name}.aside")
    return there, replace(there, place=place)


BOTH_WAYS = pytest.mark.parametrize("groups", [GROUPS, GROUPS[::-1]], ids="-".join)


@BOTH_WAYS
def test_two_who_rename_in_the_same_groups_the_other_way_round_both_do(
    two_groups: TwoGroups, groups: tuple[str, str]
) -> None:
    renames = (
        [aside(0, groups[0])],  # which has its turn while the others come
        [aside(1, each) for each in groups],
        [aside(2, each) for each in groups[::-1]],
    )
    at_once(*(lambda volumes, pairs=pairs: volumes.rename(pairs) for pairs in renames))
    assert sorted(two_groups.changes) == sorted(
        f"lvrename {there.name} {new.name}" for pairs in renames for there, new in pairs
    )


@BOTH_WAYS
def test_two_who_want_volumes_in_the_same_groups_the_other_way_round_both_get_them(
    two_groups: TwoGroups, groups: tuple[str, str]
) -> None:
    wanted = (
        [NewVolume(volume(0, groups[0]), MiB(8))],
        [NewVolume(volume(1, each), MiB(8)) for each in groups],
        [NewVolume(volume(2, each), MiB(8)) for each in groups[::-1]],
    )
    at_once(*(lambda volumes, new=new: volumes.ensure_present(new) for new in wanted))
    assert two_groups.changes == []  # all were there
