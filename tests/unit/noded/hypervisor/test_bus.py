"""Devices keep their places in a guest's machine, and no two have the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Conflict
from common.model.kvm import KvmParameters
from common.names import DiskId, NicId
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm import disk_devices, nic_devices
from noded.hypervisor.kvm.bus import Fixed, fixed, ports
from noded.hypervisor.kvm.commands import DEFAULT_MACHINE
from noded.hypervisor.slots import DISK_SLOTS, NIC_SLOTS, disk_slots, nic_slots
from tests.support.disks import file_disk

IDS = st.integers(0, 30).map(lambda number: DiskId(str(number)))
PARAMETERS = KvmParameters()


@given(st.lists(IDS, unique=True, max_size=DISK_SLOTS), st.data())
def test_disks_keep_their_slots_and_others_get_free_ones(
    disks: list[DiskId], data: st.DataObject
) -> None:
    before = disk_slots(disks, {})
    assert list(before.values()) == list(range(len(disks)))
    kept = data.draw(st.sets(st.sampled_from(disks))) if disks else set()
    more = data.draw(st.lists(IDS, unique=True, max_size=DISK_SLOTS - len(kept)))
    after = disk_slots(more, {disk: before[disk] for disk in kept})
    assert after.keys() == kept | set(more)
    assert all(after[disk] == before[disk] for disk in kept)
    assert len(set(after.values())) == len(after)


def test_more_devices_than_slots_are_refused() -> None:
    with pytest.raises(Conflict, match="places for 16 disks"):
        disk_slots([DiskId(str(number)) for number in range(DISK_SLOTS + 1)], {})
    with pytest.raises(Conflict, match="places for 8 nics"):
        nic_slots([NicId("a")], {NicId("b"): NIC_SLOTS})


@pytest.mark.parametrize("machine", [DEFAULT_MACHINE, "pc-q35-7.2"])
def test_each_device_has_an_address_of_its_own(machine: str) -> None:
    disk = file_disk("d" * 36, "/srv/web1.img")
    nic = NicSpec(id=NicId("n"), instance=disk.instance, mac="aa:00:00:00:00:01", mode="", link="")
    disks = [disk_devices.device(disk, n, PARAMETERS, machine) for n in range(DISK_SLOTS)]
    nics = [nic_devices.device(nic, n, PARAMETERS, machine) for n in range(NIC_SLOTS)]
    others = [fixed(machine, address) for address in Fixed] + list(ports(machine))
    made = [*disks, *nics, *others]
    assert len({(each["bus"], each.get("addr")) for each in made}) == len(made)
    assert len({each["id"] for each in (*disks, *nics)}) == DISK_SLOTS + NIC_SLOTS
    ours = {each["bus"] for each in (*disks, *nics)} - {"pci.0"}
    assert ours == {port["id"] for port in ports(machine)}


def test_ports_of_a_q35_are_told_apart() -> None:
    made = ports("q35")
    for what in ("id", "addr", "chassis"):
        assert len({port[what] for port in made}) == DISK_SLOTS + NIC_SLOTS
