"""DRBD 9: what it told of two devices of one node, each other's peers, and what it is told."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Self

import pytest

from common.model.disk_parameters import DrbdParameters, Protocol
from common.names import MiB
from common.noderpc.mirrors import Copying, CopyState, Link
from noded.storage.drbd.decide import is_split
from noded.storage.drbd.line import NO_SUCH_RESOURCE
from noded.storage.drbd.messages import (
    CONTEXT,
    NET,
    Attributes,
    Message,
    as_number,
    read_message,
    read_number,
    unpack_address,
    unpack_all,
)
from noded.storage.drbd.module import Connection, Device, Endpoint
from noded.storage.drbd.nine import netlink
from noded.storage.drbd.nine.language import Nine
from noded.storage.drbd.nine.parse import read_devices
from noded.storage.drbd.nine.told import PATH, Told

NONE = "0" * 16
DISK = "dddddddd-0000-4000-8000-00000000000"
HERE, THERE = Endpoint("192.0.2.1", 11000), Endpoint("2001:db8::2", 11000)
LINK = Connection("gantry-d", HERE, THERE, 1)


@cache
def recorded() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(
        Path(__file__).with_name("drbd-9.2.16.json").read_text()
    )
    return found


def told(when: str) -> tuple[Device, ...]:
    kinds = {
        kind: [read_message(bytes.fromhex(each)) for each in messages]
        for kind, messages in recorded()[when].items()
    }
    return read_devices(Told(**kinds))


# What it tells


def test_device_is_told_with_its_volumes_and_both_ends() -> None:
    one, other = told("in use")
    assert (one.resource, one.minor, one.size) == (f"gantry-{DISK}a", 100, 16)
    assert one.volumes is not None
    assert [path.rpartition(".")[2] for path in one.volumes] == ["data", "meta"]
    assert one.connection == Connection(
        f"gantry-{DISK}a", Endpoint("127.0.0.1", 11042), Endpoint("127.0.0.2", 11042)
    )
    assert other.connection is not None
    assert (one.connection.number, other.connection.number) == (0, 1)
    assert other.connection.own == one.connection.peer
    assert not one.allows_two


def test_one_is_primary_and_both_are_good() -> None:
    one, other = told("in use")
    assert (one.report.primary, one.report.peer_primary) == (True, False)
    assert (other.report.primary, other.report.peer_primary) == (False, True)
    for device in (one, other):
        assert device.report.own is device.report.peer is CopyState.UP_TO_DATE
        assert device.report.link is Link.CONNECTED
        assert (device.report.percent, device.report.behind_kib) == (100.0, 0)
    # The lowest bit of the current one tells who is primary, and is no part of it.
    assert one.report.generations[:2] == other.report.generations[:2]
    assert one.report.generations[1] == NONE


def test_new_copy_is_inconsistent() -> None:
    (one,) = told("new")
    assert (one.report.own, one.report.link) == (CopyState.INCONSISTENT, Link.CONNECTING)
    assert one.report.generations == ("0000000000000004", NONE, NONE, NONE)


def test_what_was_written_alone_is_counted() -> None:
    (one,) = told("behind")
    assert (one.report.peer, one.report.behind_kib) == (CopyState.OUTDATED, 1024)
    assert one.report.percent == 93.75
    assert one.report.has_written_apart


def test_copying_that_waits_is_told_by_both_with_its_direction() -> None:
    source, target = told("paused")
    assert (source.report.copying, target.report.copying) == (Copying.TO_PEER, Copying.FROM_PEER)
    assert (source.report.own, target.report.own) == (CopyState.UP_TO_DATE, CopyState.INCONSISTENT)
    for device in (source, target):
        assert device.report.paused
        assert 0 <= device.report.percent < 100


def test_a_copy_that_nobody_has_confirmed_is_not_told_to_be_the_newest() -> None:
    """DRBD 9 takes any copy for the newest that has not met a peer yet, as a converted one."""
    resources, devices = (
        [read_message(bytes.fromhex(each)) for each in recorded()["in use"][kind][1:]]
        for kind in ("resources", "devices")
    )
    (alone,) = read_devices(Told(resources, devices, [], []))
    assert (alone.report.own, alone.report.primary) == (CopyState.CONSISTENT, False)
    for device in (*told("behind"), *told("split")):  # in use, or known to be ahead
        assert device.report.own is CopyState.UP_TO_DATE


@pytest.mark.parametrize(
    ("flags", "own"),
    [(0x80000015, CopyState.UP_TO_DATE), (0x80000004, CopyState.CONSISTENT)],
    ids=["met", "never met"],
)
def test_a_copy_that_has_met_the_other_one_stays_the_newest_when_that_dies(
    flags: int, own: CopyState
) -> None:
    """Else no guest could be started where its other copy is, once its node has died."""
    resources, devices, connections, peers = (
        [read_message(bytes.fromhex(each)) for each in recorded()["in use"][kind]]
        for kind in ("resources", "devices", "connections", "peers")
    )
    parted = [with_(each, {17: {1: as_number(8), 2: as_number(0)}}) for each in connections]
    lost = {18: {1: as_number(9), 2: as_number(7)}, 22: {9: as_number(flags)}}
    unheard = [with_(each, lost) for each in peers]
    one, other = read_devices(Told(resources, devices, parted, unheard))
    assert (one.report.primary, one.report.own) == (True, CopyState.UP_TO_DATE)
    assert (other.report.primary, other.report.own) == (False, own)
    assert other.report.link is Link.CONNECTING


def with_(said: Message, changes: Mapping[int, Attributes]) -> Message:
    """Return a message with other values of some attributes."""
    parts = {number: {**part, **changes.get(number, {})} for number, part in said.parts.items()}
    return Message(said.minor, said.code, parts)


def test_comparing_is_told_with_how_much_has_been_compared() -> None:
    source, _ = told("verifying")
    assert (source.report.copying, source.report.own) == (Copying.VERIFYING, CopyState.UP_TO_DATE)
    assert source.report.percent == pytest.approx(11.96, abs=0.01)


def test_two_primaries_are_told() -> None:
    for device in told("two primaries"):
        assert device.allows_two
        assert device.report.primary
        assert device.report.peer_primary


def test_ends_that_were_written_apart_have_given_each_other_up() -> None:
    for device in told("split"):
        assert (device.connection, device.report.link) == (None, Link.NONE)
        assert is_split(device.report).split


def test_resource_without_a_device_is_no_device() -> None:
    assert len(recorded()["one without devices"]["resources"]) == 3
    assert [device.minor for device in told("one without devices")] == [100, 101]


def test_what_another_look_did_not_see_yet_is_not_there() -> None:
    device = read_message(bytes.fromhex(recorded()["in use"]["devices"][0]))
    (one,) = read_devices(Told([], [device], [], []))
    assert (one.connection, one.report.link, one.report.primary) == (None, Link.NONE, False)
    assert one.report.peer is CopyState.UNKNOWN


# What it is told

Parts = dict[int, dict[int, bytes]]


class Recorder:
    """A line on which nobody answers; ``said`` is what was to be changed."""

    said: list[tuple[int, int, Parts]]
    there: tuple[Message, ...] = ()  # connections
    fine: tuple[int, ...] = ()

    def __init__(self, version: int) -> None:
        assert version == 2

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def every(self, command: int) -> tuple[Message, ...]:
        return self.there if command == netlink.GET_CONNECTIONS else ()

    def change(
        self, command: int, parts: bytes, _: str, *, minor: int = -1, fine: tuple[int, ...] = ()
    ) -> None:
        read = {number: dict(unpack_all(value)) for number, value in unpack_all(parts)}
        self.said.append((command, minor, read))
        type(self).fine = fine


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> type[Recorder]:
    class Line(Recorder):
        said: list[tuple[int, int, Parts]] = []

    monkeypatch.setattr(netlink, "Line", Line)
    return Line


def test_a_device_gets_its_number_and_is_promoted_by_nobody_who_opens_it(
    line: type[Recorder],
) -> None:
    Nine().create("gantry-d", 7, 1)
    (resource, _, about), (volume, minor, place) = line.said
    assert (resource, volume, minor) == (netlink.NEW_RESOURCE, netlink.NEW_MINOR, 7)
    assert about[CONTEXT] == {2: b"gantry-d\0"}
    assert about[netlink.RESOURCE_OPTIONS] == {3: b"\0", 4: as_number(1)}
    assert place[CONTEXT] == {1: bytes(4), 2: b"gantry-d\0"}


@pytest.mark.parametrize("allow_two", [False, True])
@pytest.mark.parametrize("discard", [False, True])
def test_a_connection_is_made_with_all_that_is_allowed_before_anybody_is_met(
    line: type[Recorder], discard: bool, allow_two: bool
) -> None:
    proof = {1: b"secret\0", 2: b"sha256\0"}
    parameters = DrbdParameters(protocol=Protocol.B, resync_rate=300)
    Nine().introduce(LINK, proof, parameters, discard=discard, allow_two=allow_two)
    commands = [command for command, _, _ in line.said]
    assert commands == [netlink.NEW_PEER, netlink.NEW_PATH, netlink.PEER_DEVICE_OPTIONS]
    Nine().meet(LINK, discard=discard)
    assert line.said[3][0] == netlink.CONNECT
    peer, path, speed, connect = (parts for _, _, parts in line.said)
    for parts in (peer, path, speed, connect):
        assert (parts[CONTEXT][2], read_number(parts[CONTEXT], 6)) == (b"gantry-d\0", 0)
    assert (peer[NET][1], peer[NET][2], peer[NET][24]) == (*proof.values(), bytes([allow_two]))
    assert [read_number(peer[NET], number) for number in (6, 30)] == [2, 1]  # B, resource-only
    ends = [unpack_address(path[PATH][number]) for number in (1, 2)]
    assert ends == [("192.0.2.1", 11000), ("2001:db8::2", 11000)]
    assert speed[netlink.SPEED] == {1: as_number(300), 2: as_number(0)}
    assert connect[netlink.CONNECTING] == {2: bytes([discard])}


def test_who_was_the_peer_before_is_forgotten_first(line: type[Recorder]) -> None:
    connections = recorded()["split"]["connections"]
    line.there = tuple(read_message(bytes.fromhex(each)) for each in connections)
    link = Connection(f"gantry-{DISK}a", HERE, THERE, 0)
    Nine().introduce(link, {}, DrbdParameters(), discard=False, allow_two=False)
    assert [command for command, _, _ in line.said[:3]] == [
        netlink.DISCONNECT, netlink.DEL_PEER, netlink.NEW_PEER
    ]  # fmt: skip
    assert line.said[1][2][CONTEXT][6] == as_number(1)
    assert len(line.said) == 5  # the other resource's connection stays


def test_dynamic_rate_has_its_own_parameters() -> None:
    parameters = DrbdParameters(dynamic_resync=True, c_fill_target=100)
    assert netlink.speed(parameters) == {
        2: as_number(20), 3: as_number(1), 4: as_number(100), 5: as_number(61440),
        6: as_number(4096),
    }  # fmt: skip


def test_a_device_that_is_not_there_is_gone(line: type[Recorder]) -> None:
    Nine().remove("gantry-d")
    assert ([command for command, _, _ in line.said], line.fine) == (
        [netlink.DOWN], (NO_SUCH_RESOURCE,)
    )  # fmt: skip


def test_programs_are_told_of_resources_and_of_the_peers_number() -> None:
    nine = Nine()
    assert nine.disconnect(LINK) == ("drbdsetup", "disconnect", "gantry-d", "0")
    assert nine.net_options(LINK, "--x")[1:] == ("net-options", "gantry-d", "0", "--x")
    assert nine.primary("gantry-d", 7, force=True) == (
        "drbdsetup", "primary", "gantry-d", "--force"
    )  # fmt: skip
    assert nine.secondary("gantry-d", 7) == ("drbdsetup", "secondary", "gantry-d")
    attach = nine.attach(7, "/dev/d", "/dev/m", MiB(1024), DrbdParameters(disk_barriers="b"))
    assert attach == (
        "drbdsetup", "attach", "7", "/dev/d", "/dev/m", "flexible", "--size=1024M",
        "--on-io-error=detach", "--disk-barrier=no",
    )  # fmt: skip
    assert nine.create_meta(7, "/dev/m") == (
        "drbdmeta", "--force", "7", "v09", "/dev/m", "flex-external", "create-md", "1"
    )  # fmt: skip
