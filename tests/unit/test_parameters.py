"""Parameters are checked where they are declared; a bad one that is stored harms nobody else."""

from typing import Any

import pytest

from common.errors import InvalidRequest
from common.messages import Order
from common.model.cluster import Cluster
from common.model.disk_parameters import (
    DISK_PARAMETERS,
    DrbdParameters,
    GlusterParameters,
    PlainParameters,
    RbdParameters,
)
from common.model.hypervisors import HYPERVISORS, hypervisor_parameters
from common.model.kvm import KvmParameters
from common.model.parameters import (
    Backend,
    NicParameters,
    NodeParameters,
    complaints,
    edited,
    edited_of_nodes,
    filled,
    settled,
    sound,
)
from common.model.settings import Settings, bad_settings, read_settings
from common.names import ClusterId, ClusterName, MiB, NodeId

DECLARED = (
    Backend,
    NicParameters,
    NodeParameters,
    *HYPERVISORS.values(),
    *DISK_PARAMETERS.values(),
)


@pytest.mark.parametrize(
    ("kind", "layer", "says"),
    [
        (Backend, {"vcpus": -3}, "vcpus is a whole number, at least 1"),
        (Backend, {"vcpus": 10**6}, "vcpus is a whole number, at most 1024"),
        (Backend, {"minmem": 0}, "minmem is the least memory, at least 1 MiB"),
        (Backend, {"minmem": 256, "maxmem": 128}, "minmem, 256 MiB, is more than maxmem, 128 MiB"),
        (Backend, {"spindle_use": -1}, "spindle_use"),
        (Backend, {"memory": 1}, "there is no “memory”"),
        (NicParameters, {"lnk": "br0"}, "there is no “lnk”"),
        (NicParameters, {"mode": "macvtap"}, "mode cannot be 'macvtap'"),
        (NicParameters, {"vlan": "10.20"}, "vlan cannot be “10.20”: give one as .10"),
        (NicParameters, {"vlan": ".0"}, "its numbers are from 1 to 4094"),
        (NicParameters, {"vlan": ".10:10"}, "each once"),
        (NicParameters, {"vlan": ".10", "mode": "routed"}, "a routed nic is in no VLAN"),
        (NicParameters, {"link": "../etc"}, "“../etc” cannot be the name of a link"),
        (NicParameters, {"link": ""}, "“” cannot be the name of a link"),
        (NodeParameters, {"cpu_speed": 0}, "cpu_speed"),
        (NodeParameters, {"ssh_port": 70000}, "ssh_port"),
        (NodeParameters, {"oob_program": "ipmi"}, "oob_program is a path from /, not “ipmi”"),
        (NodeParameters, {"exclusive_storage": "maybe"}, "exclusive_storage is true or false"),
        (NodeParameters, {"foo": 1}, "there is no “foo”"),
        (KvmParameters, {"floppy_image_path": "/x"}, "guests have no floppy drives"),
        (KvmParameters, {"boot_order": "floppy"}, "boot_order cannot be 'floppy'"),
        (KvmParameters, {"nic_type": "ne2k"}, "nic_type"),
        (KvmParameters, {"disk_aio": "posix"}, "disk_aio"),
        (KvmParameters, {"disk_cache": "unsafe"}, "disk_cache"),
        (KvmParameters, {"initrd_path": "/i"}, "initrd_path is set but kernel_path is not"),
        (KvmParameters, {"disk_aio": "native", "disk_cache": "writeback"}, "disk_aio=native"),
        (KvmParameters, {"vnc_bind_address": "0.0.0.0"}, "has no password"),
        (KvmParameters, {"vnc_password_file": "web1"}, "a whole path on the node"),
        (KvmParameters, {"kernel_path": "vmlinuz"}, "kernel_path has to be a whole path"),
        (KvmParameters, {"kvm_path": "qemu"}, "kvm_path has to be a whole path on the node"),
        (
            KvmParameters,
            {"kernel_path": "/k", "initrd_path": "./i"},
            "initrd_path has to be a whole path on the node, not “./i”",
        ),
        (KvmParameters, {"vnc_password_file": "/a", "vnc_bind_address": "a,b"}, "no IP address"),
        (PlainParameters, {"stripes": 0}, "stripes is a whole number, at least 1"),
        (PlainParameters, {"stripe-size": 12}, "stripe-size is a power of two, not 12"),
        (PlainParameters, {"thin-pool": "vg/pool"}, "thin-pool cannot be “vg/pool”"),
        (DrbdParameters, {"resync_rate": 4}, "there is no “resync_rate”"),
        (DrbdParameters, {"resync-rate": 0}, "resync-rate is a whole number, at least 1"),
        (DrbdParameters, {"disk-barriers": "nb"}, "letters of “bfd” to switch off, not “nb”"),
        (DrbdParameters, {"disk-barriers": ""}, "letters of “bfd” to switch off, not “”"),
        (DrbdParameters, {"metavg": "-x"}, "metavg cannot be “-x”"),
        (DrbdParameters, {"protocol": "D"}, "protocol cannot be 'D'"),
        (RbdParameters, {"access": "userspace"}, "access cannot be 'userspace'"),
        (RbdParameters, {"pool": "--all"}, "pool cannot be “--all”"),
        (RbdParameters, {"pool": ""}, "pool is the name of a pool"),
        (GlusterParameters, {"volume": "../x"}, "volume cannot be “../x”"),
        (GlusterParameters, {"port": 0}, "port"),
        (KvmParameters, {"migration_bandwidth": 0}, "migration_bandwidth"),
        (
            KvmParameters,
            {"migration_caps": "multifd"},
            "there are auto-converge, postcopy-ram, xbzrle",
        ),
        (KvmParameters, {"migration_downtime": -1}, "migration_downtime"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(
    kind: type[Order], layer: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        filled(kind, layer, what="what was given")
    assert says in refused.value.message


@pytest.mark.parametrize("kind", DECLARED)
def test_defaults_make_sense(kind: type[Order]) -> None:
    assert filled(kind, what="nothing") == kind()


@pytest.mark.parametrize("switched_off", ["n", "b", "fb", "dfb"])
def test_barriers_of_drbd_are_switched_off_by_letters_in_any_order(switched_off: str) -> None:
    DrbdParameters(disk_barriers=switched_off)


def test_a_hypervisor_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no hypervisor “vmware”; known are"):
        hypervisor_parameters("vmware", what="x")


@pytest.mark.parametrize("name", sorted(HYPERVISORS))
def test_a_guest_has_nothing_special_unless_it_was_asked_for(name: str) -> None:
    kind = HYPERVISORS[name]
    parameters = sound(kind)
    assert not kind.has_display(parameters)
    assert not kind.has_vnc(parameters)
    assert not kind.has_user_of_pool(parameters)
    assert not kind.is_moved_by_post_copy(parameters)
    assert kind.is_moved_live(parameters)
    assert not kind.is_moved_live(parameters | {"migration_mode": "non-live"})
    assert (kind.queues_of(parameters), kind.disk_of_tpm(parameters)) == (1, "")


def test_of_a_hypervisor_that_declares_nothing_there_is_nothing() -> None:
    fake, kvm = HYPERVISORS["fake"], HYPERVISORS["kvm"]
    asked = {
        "migration_caps": "xbzrle:postcopy-ram", "security_model": "pool", "spice_bind": "::1",
        "tpm": "state", "virtio_net_queues": 4,
    }  # fmt: skip
    parameters = sound(kvm, asked)
    assert kvm.has_display(parameters) > fake.has_display(parameters)
    assert kvm.has_user_of_pool(parameters) > fake.has_user_of_pool(parameters)
    assert kvm.is_moved_by_post_copy(parameters) > fake.is_moved_by_post_copy(parameters)
    assert (kvm.queues_of(parameters), fake.queues_of(parameters)) == (4, 1)
    assert (kvm.disk_of_tpm(parameters), fake.disk_of_tpm(parameters)) == ("state", "")
    assert kvm.with_disk_of_tpm(parameters, "uuid") == parameters | {"tpm": "uuid"}
    assert fake.with_disk_of_tpm(parameters, "uuid") == parameters
    assert not kvm.has_vnc(parameters)
    assert kvm.has_vnc({"vnc_bind_address": "::1"}) > fake.has_vnc({"vnc_bind_address": "::1"})


def test_who_only_looks_sees_a_default_for_a_bad_value_and_all_the_others() -> None:
    cluster = {"vcpus": 2, "warp": 9, "maxmem": 512}
    instance = {"vcpus": -3, "minmem": 256}
    assert settled(Backend, cluster, instance) == Backend(vcpus=2, maxmem=MiB(512), minmem=MiB(256))
    assert sound(Backend, cluster)["maxmem"] == 512


def test_values_that_do_not_fit_each_other_are_left_out_one_by_one() -> None:
    assert settled(Backend, {"minmem": 512}) == Backend()
    both = {"minmem": 512, "maxmem": 1024}
    assert settled(Backend, both | {"warp": 9}) == Backend(minmem=MiB(512), maxmem=MiB(1024))


def test_each_bad_value_of_a_layer_is_complained_of() -> None:
    told = complaints(Backend, {}, {"vcpus": 0, "warp": 9, "maxmem": 512}, what="it")
    assert len(told) == 2
    together = complaints(Backend, {}, {"minmem": 600, "maxmem": 512}, what="it")
    assert any("is more than maxmem" in message for message in together)
    assert complaints(Backend, {}, {"vcpus": 1}, what="it") == ()


def test_values_that_fit_beside_each_other_are_not_complained_of_for_a_third_one() -> None:
    memory = {"maxmem": 2048, "minmem": 1024}
    (told,) = complaints(Backend, {}, memory | {"vcpus": 0}, what="it")
    assert "vcpus is a whole number, at least 1" in told
    kernel = {"initrd_path": "/i", "kernel_path": "/k"}
    (told,) = complaints(KvmParameters, {}, kernel | {"migration_downtime": -5}, what="it")
    assert "migration_downtime" in told


def test_what_is_wrong_with_all_values_together_is_said_first() -> None:
    told = complaints(Backend, {}, {"maxmem": 0, "minmem": 0}, what="it")
    assert "minmem is the least memory, at least 1 MiB, not 0" in told[0]


def test_default_takes_a_value_away() -> None:
    assert edited({"a": 1, "b": 2}, {"a": "default", "c": 3}) == {"b": 2, "c": 3}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"candidate_pool_size": -3}, "candidate_pool_size"),
        ({"max_running_jobs": 0}, "max_running_jobs"),
        ({"mac_prefix": "zz"}, "“zz” is no beginning of MAC addresses"),
        ({"mac_prefix": "01:00:00"}, "groups of machines"),
        ({"enabled_disk_templates": ["foo"]}, "enabled_disk_templates"),
        ({"enabled_disk_templates": []}, "at least one"),
        ({"enabled_disk_templates": ["file", "file"]}, "each once"),
        ({"enabled_hypervisors": ["vmware"]}, "no hypervisor “vmware”"),
        ({"file_storage_dir": "srv"}, "a directory's path from /, not “srv”"),
        ({"shared_file_storage_dir": "/srv/../etc"}, "a directory's path from /"),
        ({"warp": 9}, "there is no “warp”"),
    ],
)
def test_a_setting_of_the_cluster_that_makes_no_sense_is_refused(
    values: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_settings(values)
    assert says in refused.value.message


def test_settings_are_fields_of_the_cluster_and_its_own_values_fit() -> None:
    cluster = Cluster(uuid=ClusterId("u"), name=ClusterName("c"), master=NodeId("m"))
    assert set(Settings.__struct_fields__) <= set(Cluster.__struct_fields__)
    values = {name: getattr(cluster, name) for name in Cluster.__struct_fields__}
    assert list(bad_settings(values)) == []
    bad = values | {"mac_prefix": "zz", "candidate_pool_size": -3}
    assert [name for name, _ in bad_settings(bad)] == ["candidate_pool_size", "mac_prefix"]


def test_node_parameters_that_come_as_texts_are_what_they_say() -> None:
    """Ganeti's commands for groups and nodes send them so."""
    given = {"exclusive_storage": "true", "spindle_count": "3", "cpu_speed": "1.5",
             "oob_program": "/bin/oob", "ssh_port": "default", "colour": "7"}  # fmt: skip
    assert edited_of_nodes({"ssh_port": 23}, given) == {
        "colour": "7", "cpu_speed": 1.5, "exclusive_storage": True, "oob_program": "/bin/oob",
        "spindle_count": 3,
    }  # fmt: skip
    assert edited_of_nodes({}, {"exclusive_storage": "maybe"}) == {"exclusive_storage": "maybe"}
