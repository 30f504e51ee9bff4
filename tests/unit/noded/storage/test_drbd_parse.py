"""What DRBD's module told of two devices of one node, which are each other's peers."""

import json
from pathlib import Path

from common.noderpc.mirrors import Copying, CopyState, Link
from noded.storage.drbd.eight.parse import Progress, read_devices, read_progress
from noded.storage.drbd.messages import read_message
from noded.storage.drbd.module import Connection, Device, Endpoint
from noded.storage.drbd.versions import EIGHT, read_version

DISK = "dddddddd-0000-4000-8000-00000000000"
RECORDED: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("drbd-8.4.11.json").read_text()
)


def told(when: str, progress: dict[int, Progress] | None = None) -> tuple[Device, ...]:
    messages = (read_message(bytes.fromhex(each)) for each in RECORDED[when])
    return read_devices(tuple(messages), progress or {})


def test_device_is_told_with_its_volumes_and_both_ends() -> None:
    one, other = told("in use")
    assert (one.resource, one.minor, one.size) == (f"gantry-{DISK}a", 0, 4)
    mapped = f"/dev/mapper/gantry-{DISK}a".replace("d-0", "d--0").replace("-4", "--4")
    assert one.volumes is not None
    assert one.volumes[0].startswith(mapped[:20])
    assert [path.rpartition(".")[2] for path in one.volumes] == ["data", "meta"]
    assert one.connection == Connection(
        f"gantry-{DISK}a", Endpoint("127.0.0.1", 12000), Endpoint("127.0.0.2", 12000)
    )
    assert other.connection is not None
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
    assert one.report.generations == other.report.generations


def test_new_copies_are_inconsistent() -> None:
    for device in told("new"):
        assert device.report.own is CopyState.INCONSISTENT
        assert device.report.generations[0] == "0000000000000004"
        assert device.report.link is Link.CONNECTING


def test_what_was_written_alone_is_counted() -> None:
    (one,) = told("behind")
    assert (one.report.peer, one.report.behind_kib) == (CopyState.OUTDATED, 1024)
    assert one.report.percent == 75.0
    current, parted, *_ = one.report.generations
    assert current != parted != "0" * 16


def test_copying_is_told_by_its_direction() -> None:
    source, target = told("copying", {0: Progress(500), 1: Progress(501)})
    assert (source.report.copying, target.report.copying) == (
        Copying.TO_PEER, Copying.FROM_PEER,
    )  # fmt: skip
    assert (source.report.own, target.report.own) == (
        CopyState.UP_TO_DATE, CopyState.INCONSISTENT,
    )  # fmt: skip
    assert not source.report.paused
    assert 0 < source.report.percent < 100
    assert [device.report.rate_kib for device in (source, target)] == [500, 501]


def test_copying_that_waits_is_told_by_both() -> None:
    for device in told("paused"):
        assert device.report.paused
        assert device.report.copying is not Copying.NOTHING


def test_comparing_is_told_with_how_much_has_been_compared() -> None:
    source, _ = told("verifying", {0: Progress(2048, 20.0)})
    assert (source.report.copying, source.report.percent) == (Copying.VERIFYING, 20.0)
    assert source.report.own is CopyState.UP_TO_DATE


def test_two_primaries_are_told() -> None:
    for device in told("two primaries"):
        assert device.allows_two
        assert device.report.primary
        assert device.report.peer_primary


def test_resource_without_a_device_is_no_device() -> None:
    assert [device.minor for device in told("one without devices")] == [0, 1]


def test_what_waits_for_nobody_has_no_connection() -> None:
    _, other = told("standalone")
    assert other.connection is None
    assert other.report.link is Link.NONE
    assert other.report.own is CopyState.OUTDATED


PROC = """\
version: 8.4.11 (api:1/proto:86-101)
srcversion: 059B1B470318F053F5077D5
 0: cs:SyncSource ro:Secondary/Secondary ds:UpToDate/Inconsistent C r-----
    ns:2048 nr:0 dw:0 dr:2048 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:63488
\t[>...................] sync'ed:  5.9% (63488/65536)K
\tfinish: 0:02:05 speed: 1,500 (1,480) K/sec
 1: cs:VerifyS ro:Secondary/Secondary ds:UpToDate/UpToDate C r-----
    ns:16384 nr:0 dw:0 dr:20480 al:8 bm:0 lo:0 pe:0 ua:1024 ap:0 ep:1 wo:f oos:0
\t[===>................] verified: 20.0% (16384/16384)K
\tfinish: 0:00:40 speed: 2,048 (0) want: 61,440 K/sec
 7: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----
    ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
"""


def test_rates_are_read_of_what_is_copied() -> None:
    assert read_progress(PROC) == {0: Progress(1500), 1: Progress(2048, 20.0)}
    assert read_version("8.4.11\n") == ("8.4.11", EIGHT)
    assert read_version("") == ("", None)
