"""``gnt-node list-storage`` and ``volumes``: Ganeti's tables of what a job found."""

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
