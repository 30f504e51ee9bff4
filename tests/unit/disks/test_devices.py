"""Numbers that are given to mirrored disks."""

import pytest

from common.errors import NoCapacity
from common.model.backing import DrbdBacking, LvmBacking
from common.model.disk import Disk
from common.names import DiskId, MiB, NodeId
from coordinator.disks import devices
from coordinator.disks.devices import Devices

A, B, C = NodeId("alpha"), NodeId("beta"), NodeId("gamma")


def disk(port: int, minors: dict[NodeId, int]) -> Disk:
    volume = LvmBacking(group="vg", name="volume")
    backing = DrbdBacking(data=volume, meta=volume, port=port, minors=minors, secret="s")
    return Disk(uuid=DiskId("disk"), size=MiB(1), backing=backing, nodes=tuple(minors))


def free(*disks: Disk) -> Devices:
    return Devices(disks, lambda: "secret")


def test_the_lowest_minor_that_is_free_on_a_node_is_given() -> None:
    given = free(disk(11000, {A: 0, B: 1}), disk(11001, {A: 2, C: 0}))
    assert [given.minor(A), given.minor(B), given.minor(C)] == [1, 0, 1]


def test_nothing_is_given_twice() -> None:
    given = free()
    assert [given.minor(A) for _ in range(3)] == [0, 1, 2]
    assert [given.port((A, B)) for _ in range(2)] == [11000, 11001]
    assert given.port((B, C)) == 11002, "beta listens for both"
    assert given.port((C,)) == 11000, "gamma has no other there"


def test_a_port_is_free_on_both_nodes() -> None:
    given = free(disk(11000, {A: 0, B: 0}), disk(11001, {B: 1, C: 0}))
    assert given.port((A, C)) == 11002


def test_ports_and_minors_that_are_all_taken_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "PORTS", range(11000, 11001))
    monkeypatch.setattr(devices, "MOST_MINORS", 1)
    given = free(disk(11000, {A: 0, B: 0}))
    with pytest.raises(NoCapacity, match="All ports from 11000 to 11000 are taken"):
        given.port((A, C))
    with pytest.raises(NoCapacity, match="as many mirrored disks as there can be"):
        given.minor(A)
