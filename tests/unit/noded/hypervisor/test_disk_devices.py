"""Disks keep their places in a guest's machine, and no two have the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Conflict
from common.model.hypervisors import KvmParameters
from common.names import DiskId
from noded.hypervisor.kvm.commands import DEFAULT_MACHINE
from noded.hypervisor.kvm.disk_devices import device, ports
from noded.hypervisor.slots import SLOTS, filled
from tests.support.disks import file_disk

IDS = st.integers(0, 30).map(lambda number: DiskId(str(number)))
PARAMETERS = KvmParameters()


@given(st.lists(IDS, unique=True, max_size=SLOTS), st.data())
def test_disks_keep_their_slots_and_others_get_free_ones(
    disks: list[DiskId], data: st.DataObject
) -> None:
    before = filled(disks, {})
    assert list(before.values()) == list(range(len(disks)))
    kept = data.draw(st.sets(st.sampled_from(disks))) if disks else set()
    more = data.draw(st.lists(IDS, unique=True, max_size=SLOTS - len(kept)))
    after = filled(more, {disk: before[disk] for disk in kept})
    assert after.keys() == kept | set(more)
    assert all(after[disk] == before[disk] for disk in kept)
    assert len(set(after.values())) == len(after)


def test_more_disks_than_slots_are_refused() -> None:
    with pytest.raises(Conflict, match="places for 16 disks"):
        filled([DiskId(str(number)) for number in range(SLOTS + 1)], {})


@pytest.mark.parametrize("machine", [DEFAULT_MACHINE, "pc-q35-7.2"])
def test_each_slot_has_an_address_of_its_own(machine: str) -> None:
    disk = file_disk("d" * 36, "/srv/web1.img")
    made = [device(disk, slot, PARAMETERS, machine) for slot in range(SLOTS)]
    assert len({(each["bus"], each.get("addr")) for each in made}) == SLOTS
    assert len({each["id"] for each in made} | {each["drive"] for each in made}) == 2 * SLOTS
    assert {each["bus"] for each in made} - {"pci.0"} == {port["id"] for port in ports(machine)}


def test_ports_of_a_q35_are_told_apart() -> None:
    made = ports("q35")
    for what in ("id", "addr", "chassis"):
        assert len({port[what] for port in made}) == SLOTS
