"""``gnt-node list-storage`` and the like: Ganeti's tables of what a job found."""

import json

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

ROWS = [
    ["alpha", "lvm-pv", "/dev/sdb", 4096, 1024, 3072, True],
    ["beta", "lvm-pv", "/dev/sdb", 10240, 10240, 0, False],
]


def test_storage_units_are_listed_as_ganeti_lists_them(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=ROWS)
    ran = run("gnt-node list-storage -t lvm-pv --priority low alpha beta")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Node  Type   Name      Size  Used Free Allocatable",
        "alpha lvm-pv /dev/sdb  4.0G  1.0G 3.0G Y",
        "beta  lvm-pv /dev/sdb 10.0G 10.0G   0M N",
    ]
    ((order,),) = coordinator.submitted
    assert order["OP_ID"] == "OP_NODE_QUERY_STORAGE"
    assert (order["nodes"], order["storage_type"]) == (["alpha", "beta"], "lvm-pv")
    assert order["priority"] == 10


def test_fields_of_storage_units_are_chosen(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=[["/dev/sdb", 3072]])
    ran = run("gnt-node list-storage -o name,free --no-headers --separator=: --units m")
    assert ran.out == "/dev/sdb:3072\n"
    coordinator.script_job(result=[["/dev/sdb", 3072]])
    ran = run("gnt-node list-storage -o name,free --json")
    assert json.loads(ran.out) == [{"name": "/dev/sdb", "free": 3072}]
    ran = run("gnt-node list-storage -o name,colour")
    assert ran.code == 2
    assert "no field “colour”; there are node, type" in ran.err


def test_volumes_are_listed_as_ganeti_lists_them(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job(result=[["alpha", "/dev/sdb", "vg", "a.disk", 1024, "web1"]])
    ran = run("gnt-node volumes alpha")
    assert ran.out.splitlines() == [
        "Node  PhysDev  VG Name   Size Instance", "alpha /dev/sdb vg a.disk 1.0G web1",
    ]  # fmt: skip
    ((order,),) = coordinator.submitted
    assert order["OP_ID"] == "OP_NODE_QUERYVOLS"
    assert order["output_fields"] == ["node", "phys", "vg", "name", "size", "instance"]
    ran = run("gnt-node volumes -o free")
    assert "no field “free”; there are node, phys" in ran.err


def test_the_mirrored_disks_of_a_node_are_listed_as_ganeti_lists_them(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    def disk(index: int, minors: tuple[int, int]) -> dict[str, object]:
        pair = {"primary_node": "alpha", "secondary_node": "beta", "port": 11000 + index}
        pair |= {"primary_minor": minors[0], "secondary_minor": minors[1]}
        return {"iv_name": f"disk/{index}", "drbd_info": pair}

    told = {
        "web2": {"disks": [{"iv_name": "disk/0", "drbd_info": None}]},
        "web1": {"disks": [disk(0, (10, 3)), disk(1, (2, 4))]},
    }
    coordinator.script_job(result=told)
    ran = run("gnt-node list-drbd alpha")
    assert ran.out.splitlines() == [
        "Node  Minor Instance Disk   Role    PeerNode",
        "alpha     2 web1     disk/1 primary beta",
        "alpha    10 web1     disk/0 primary beta",
    ]
    ran = run("gnt-node list-drbd --no-headers --separator=: beta")
    assert ran.out.splitlines() == [
        "beta:3:web1:disk/0:secondary:alpha", "beta:4:web1:disk/1:secondary:alpha",
    ]  # fmt: skip
    assert coordinator.submitted[-1] == [{"OP_ID": "OP_INSTANCE_QUERY_DATA", "static": True}]
    assert run("gnt-node list-drbd nowhere").code == 3
