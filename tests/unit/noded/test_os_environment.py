"""What scripts of operating systems are told, by the version of the interface."""

from msgspec.structs import replace

from common.messages import to_json
from common.names import InstanceName, NicId, NodeName
from common.noderpc.network import NicSpec
from common.noderpc.operating_systems import Script, ScriptOrder, Subject
from noded.operating_systems.definition import Definition
from noded.operating_systems.environment import environment
from tests.support.disks import WEB1, file_disk

DISK = file_disk("dddddddd-0000-4000-8000-00000000000a", "/srv/disk", size=64)
BRIDGED = NicSpec(
    id=NicId("n0"), instance=WEB1, mac="aa:00:00:00:00:01", mode="bridged", link="br0"
)
ROUTED = NicSpec(
    id=NicId("n1"), instance=WEB1, mac="aa:00:00:00:00:02", ip="192.0.2.7", mode="routed", link="7"
)
ORDER = ScriptOrder(
    script=Script.CREATE,
    subject=Subject(
        id=WEB1, name=InstanceName("web1"), os="debian+testing", primary_node=NodeName("beta"),
        secondary_nodes=(NodeName("gamma"),), ctime=1.5, mtime=2.5, hypervisor="kvm",
        disks=(DISK,), disk_names=("root",), nics=(BRIDGED, ROUTED), nic_names=("", "outside"),
        hvparams={"serial_console": True, "nic_type": "e1000", "kernel_path": ""},
        beparams={"maxmem": 1024},
    ),
    parameters={"root-size": "4G"},
)  # fmt: skip
PATHS = (("/dev/dm-3", "block"),)


def test_scripts_are_told_of_the_network_that_a_nic_is_in() -> None:
    lan = {"NETWORK_NAME": "lan", "NETWORK_GATEWAY6": "2001:db8::1", "NETWORK_TAGS": ""}
    subject = replace(ORDER.subject, nic_networks=({}, lan))
    of_networks = {
        name: value
        for version in (10, 15, 20)
        for name, value in told(replace(ORDER, subject=subject), version).items()
        if "NETWORK" in name
    }
    assert of_networks == {f"NIC_1_{name}": value for name, value in lan.items()}
    assert not any("NETWORK" in name for name in told())


def definition(*versions: int) -> Definition:
    return Definition(
        name="debian", api_versions=versions, scripts={}, variants=("stable", "testing")
    )


def told(order: ScriptOrder = ORDER, *versions: int) -> dict[str, str]:
    return dict(environment(order, definition(*(versions or (10, 15, 20))), PATHS))


def test_an_instance_is_told_with_its_disks_and_nics() -> None:
    assert told() == {
        "OS_API_VERSION": "20", "OS_NAME": "debian", "OS_VARIANT": "testing", "DEBUG_LEVEL": "0",
        "PATH": "/sbin:/bin:/usr/sbin:/usr/bin", "OSP_ROOT_SIZE": "4G",
        "INSTANCE_NAME": "web1", "INSTANCE_OS": "debian+testing", "INSTANCE_UUID": WEB1,
        "INSTANCE_CTIME": "1.5", "INSTANCE_MTIME": "2.5", "INSTANCE_PRIMARY_NODE": "beta",
        "INSTANCE_SECONDARY_NODES": "gamma", "HYPERVISOR": "kvm", "INSTANCE_HYPERVISOR": "kvm",
        "DISK_COUNT": "1", "DISK_0_ACCESS": "rw", "DISK_0_PATH": "/dev/dm-3",
        "DISK_0_UUID": DISK.id, "DISK_0_SIZE": "64", "DISK_0_NAME": "root",
        "DISK_0_FRONTEND_TYPE": "paravirtual", "DISK_0_BACKEND_TYPE": "block",
        "NIC_COUNT": "2",
        "NIC_0_MAC": "aa:00:00:00:00:01", "NIC_0_UUID": "n0", "NIC_0_MODE": "bridged",
        "NIC_0_BRIDGE": "br0", "NIC_0_LINK": "br0", "NIC_0_FRONTEND_TYPE": "e1000",
        "NIC_1_MAC": "aa:00:00:00:00:02", "NIC_1_UUID": "n1", "NIC_1_MODE": "routed",
        "NIC_1_LINK": "7", "NIC_1_IP": "192.0.2.7", "NIC_1_NAME": "outside",
        "NIC_1_FRONTEND_TYPE": "e1000",
        "INSTANCE_BE_maxmem": "1024", "INSTANCE_HV_serial_console": "True",
        "INSTANCE_HV_nic_type": "e1000", "INSTANCE_HV_kernel_path": "",
    }  # fmt: skip


def test_an_older_definition_is_told_what_it_knows() -> None:
    of_15, of_10 = told(ORDER, 10, 15), told(ORDER, 10)
    assert told().keys() - of_15.keys() == {"OSP_ROOT_SIZE"}
    assert of_15.keys() - of_10.keys() == {
        "OS_VARIANT", "INSTANCE_HYPERVISOR", "INSTANCE_BE_maxmem", "INSTANCE_HV_serial_console",
        "INSTANCE_HV_nic_type", "INSTANCE_HV_kernel_path", "NIC_0_MODE", "NIC_0_LINK",
        "NIC_1_MODE", "NIC_1_LINK",
    }  # fmt: skip
    assert (of_15["OS_API_VERSION"], of_10["OS_API_VERSION"]) == ("15", "10")


def test_each_script_is_told_what_only_it_needs() -> None:
    again = replace(ORDER, is_reinstallation=True)
    renaming = replace(ORDER, script=Script.RENAME, old_name="old1")
    importing = replace(ORDER, script=Script.IMPORT, disk=0)
    own = [dict(told(each).items() - told().items()) for each in (again, renaming, importing)]
    assert own == [
        {"INSTANCE_REINSTALL": "1"},
        {"OLD_INSTANCE_NAME": "old1"},
        {"IMPORT_DEVICE": "/dev/dm-3", "IMPORT_DISK_PATH": "/dev/dm-3", "IMPORT_INDEX": "0"},
    ]


def test_a_script_is_told_how_much_it_is_asked_to_say() -> None:
    assert told(replace(ORDER, debug_level=2))["DEBUG_LEVEL"] == "2"
    assert b"debug_level" not in to_json(ORDER), "older nodes would refuse it"


def test_the_first_variant_is_the_usual_one() -> None:
    subject = replace(ORDER.subject, os="debian")
    assert told(replace(ORDER, subject=subject))["OS_VARIANT"] == "stable"
