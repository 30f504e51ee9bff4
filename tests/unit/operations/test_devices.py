import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.messages import from_builtins, to_builtins
from common.model.cluster import Cluster
from common.model.disk import Mode
from common.names import ClusterId, ClusterName, NodeId
from coordinator.operations.devices import (
    DiskRequest,
    NicRequest,
    as_new_devices,
    as_one_disk,
)

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
    shared_file_storage_dir="/srv/shared",
)  # fmt: skip


def _disk(**fields: object) -> DiskRequest:
    return from_builtins(fields, DiskRequest, what="a disk")


def _nic(**fields: object) -> NicRequest:
    return from_builtins(fields, NicRequest, what="a nic")


def test_a_size_is_mib_or_has_a_unit() -> None:
    assert _disk(size=64).size_mib == 64
    assert _disk(size="64").size_mib == 64
    assert _disk(size="1.5G", mode="ro").size_mib == 1536
    assert _disk(size=1, mode="ro").mode is Mode.READ_ONLY


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"size": 0}, "at least 1 MiB"),
        ({"size": -5}, "“-5” is no size"),
        ({"size": "12Q"}, "“12Q” is no size"),
        ({"size": "9999999999T"}, "larger than any disk"),
        ({"size": "1G", "mode": "rwx"}, "rwx"),
        ({"size": "1G", "volume": "xenvg"}, "volume"),
        ({}, "size"),
    ],
)
def test_what_is_no_disk_is_refused(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        _disk(**fields)


def test_what_a_provider_is_told_may_be_among_the_rest() -> None:
    told = {"size": "1G", "provider": "shelf", "nas_ip": "192.0.2.9", "thin": True}
    disk = _disk(**as_one_disk(told))
    assert (disk.size_mib, disk.provider) == (1024, "shelf")
    assert disk.provider_parameters == {"nas_ip": "192.0.2.9", "thin": "True"}
    assert _disk(**as_one_disk(to_builtins(disk))) == disk, "as it is stored"
    for others in ({"size": "1G", "nas_ip": "192.0.2.9"}, "no disk", None):
        assert as_one_disk(others) == others


def test_access_is_a_mode_as_in_ganetis_first_papers() -> None:
    assert _disk(**as_one_disk({"size": "1G", "access": "r"})).mode is Mode.READ_ONLY
    assert _disk(**as_one_disk({"size": "1G", "access": "w"})).mode is Mode.READ_WRITE
    assert as_one_disk({"mode": "ro", "access": "w"}) == {"mode": "ro", "access": "w"}


def test_guests_reach_no_disk_past_the_kernel() -> None:
    assert _disk(**as_one_disk({"size": "1G", "access": "kernelspace"})) == _disk(size="1G")
    with pytest.raises(InvalidRequest, match="access"):
        _disk(**as_one_disk({"size": "1G", "access": "userspace"}))


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_refused_in_words(text: str) -> None:
    try:
        assert _disk(size=text).size_mib >= 1
    except InvalidRequest as error:
        assert error.message.endswith(".")  # noqa: PT017 -- either way is fine


@pytest.mark.parametrize("mac", ["", "auto", "generate"])
def test_an_address_that_is_left_open_is_made(mac: str) -> None:
    assert _nic(mac=mac).wanted_mac() == ""


def test_an_address_is_written_small() -> None:
    assert _nic(mac="AA:00:00:12:34:5F").wanted_mac() == "aa:00:00:12:34:5f"
    with pytest.raises(InvalidRequest, match="“aa:00:00:12:34” is no MAC address"):
        _nic(mac="aa:00:00:12:34")


def test_only_what_is_told_of_a_nic_is_kept() -> None:
    assert _nic().parameters() == {}
    assert _nic(link="br1", mode="bridged").parameters() == {"link": "br1", "mode": "bridged"}
    assert _nic(bridge="br2").parameters() == {"link": "br2"}
    assert _nic(bridge="auto", mode="bridged").parameters() == {"mode": "bridged"}
    assert _nic(link="auto").parameters() == {}
    assert _nic(guarded="no").parameters() == _nic(guarded=False).parameters()
    assert _nic(guarded="yes").parameters() == {"guarded": True}


def test_what_a_new_device_is_said_not_to_have_is_left_out() -> None:
    told = {
        "nics": [{"ip": "none", "network": "None", "name": "NONE", "link": "none"}, {}],
        "disks": [{"size": 64, "name": "none", "vg": "none", "access": "r"}, "odd"],
    }
    assert as_new_devices(told) == {
        "nics": [{"link": "none"}, {}],
        "disks": [{"size": 64, "vg": "none", "mode": Mode.READ_ONLY}, "odd"],
    }
    assert as_new_devices({"disks": 7}) == {"disks": 7}
