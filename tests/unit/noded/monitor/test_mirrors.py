"""What DRBD tells everybody is read, however little it is."""

import pytest

from common.errors import NodeFailure
from noded.monitor.mirrors import parse_drbd

# Of DRBD 8.4, as the kernel of the lab tells it before any device is set up.
NOTHING = "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: 0123456789ABCDEF01234567 \n"
DEVICE = """ 3: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----
    ns:0 nr:0 dw:0 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
"""


def test_a_module_without_any_device_is_read() -> None:
    mirrors = parse_drbd(NOTHING)
    assert (mirrors.version, mirrors.devices) == ("8.4.11", ())


def test_drbd_9_tells_everybody_its_version_alone() -> None:
    mirrors = parse_drbd(
        "version: 9.2.16 (api:2/proto:118-123)\n"
        "GIT-hash: 3a0f974085c481737e13fb39f03ccd85b63eb7df build by @host, 2026-11-22 21:15:52\n"
        "Transports (api:21): tcp (9.2.16)\n"
    )
    assert (mirrors.version, mirrors.protocol, mirrors.devices) == ("9.2.16", "118-123", ())


@pytest.mark.parametrize("count", [1, 2])
def test_devices_are_read_each(count: int) -> None:
    devices = parse_drbd(NOTHING + "\n" + DEVICE * count).devices
    assert [each.minor for each in devices] == [3] * count
    assert all(each.disks == ("UpToDate", "UpToDate") for each in devices)


def test_anything_else_is_refused() -> None:
    with pytest.raises(NodeFailure):
        parse_drbd("")
