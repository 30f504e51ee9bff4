"""A guest goes where it is made as it runs, and not as it is configured by now."""

from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.hypervisors import fingerprint
from common.model.hypervisors import told as told_of
from common.model.kvm import KvmParameters
from common.names import InstanceId, InstanceName, MiB, NicId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState
from common.noderpc.network import NicSpec
from coordinator.operations.instance.as_it_runs import as_it_runs, check_unchanged

WEB1, NIC = InstanceId("web1"), NicId("nic")


def guest(**parameters: Any) -> GuestSpec:
    nic = NicSpec(id=NIC, instance=WEB1, mac="aa:00:00:00:00:01", mode="bridged", link="br0")
    filled = told_of(KvmParameters()) | parameters
    return GuestSpec(
        id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(128), vcpus=1,
        nics=(nic,), parameters=filled,
    )  # fmt: skip


def found(**told: Any) -> GuestReport:
    fields: dict[str, Any] = {"nics": (NIC,), "nic_slots": {NIC: 3}, "disks": {}} | told
    return GuestReport(
        id=WEB1, name=InstanceName("web1"), state=GuestState.RUNNING, memory=MiB(128), vcpus=1,
        **fields,
    )  # fmt: skip


def test_the_machine_is_that_with_which_it_was_started() -> None:
    pinned = {"vga": "cirrus", "virtio_net_queues": 4, "acpi": False, "accelerator": "tcg"}
    told = found(pinned=pinned, wanted_memory=MiB(64))
    moved = as_it_runs(guest(vga="std", soundhw="hda"), told)
    assert {name: moved.parameters[name] for name in pinned} == pinned
    assert moved.parameters["soundhw"] == "hda"  # of which its node tells nothing
    assert [nic.queues for nic in moved.nics] == [4]
    assert (moved.nic_slots, moved.wanted_memory) == ({NIC: 3}, 64)


def test_a_node_chooses_no_file_and_no_program_of_another() -> None:
    told = {"kernel_path": "/srv/k", "kvm_path": "/srv/q", "kvm_extra": "-S", "cpu_mask": "0"}
    assert as_it_runs(guest(), found(pinned=told)).parameters == guest().parameters


@pytest.mark.parametrize(
    "pinned",
    [
        {"virtio_net_queues": 2**20},
        {"virtio_net_queues": "many"},
        {"vga": "none,evil"},
        {"acpi": "perhaps"},
        {"boot_order": "cdrom"},
    ],
)
def test_a_node_that_tells_nonsense_is_not_believed(pinned: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="what its node tells of web1"):
        as_it_runs(guest(), found(pinned=pinned))


@pytest.mark.parametrize(
    ("name", "value"),
    [("cdrom_image_path", "/srv/other.iso"), ("kvm_extra", "-S"), ("kernel_path", "/k")],
)
def test_what_was_changed_since_it_was_started_is_named(name: str, value: str) -> None:
    compared = {each: fingerprint("") for each in KvmParameters.compared}
    check_unchanged(guest(), found(compared=compared))
    with pytest.raises(Conflict, match=f"was given other {name} since it was started"):
        check_unchanged(guest(**{name: value}), found(compared=compared))


def test_what_an_older_version_has_started_is_moved_after_its_reboot() -> None:
    with pytest.raises(Conflict, match="does not tell where in its machine its devices are"):
        check_unchanged(guest(), found(nic_slots=None))
