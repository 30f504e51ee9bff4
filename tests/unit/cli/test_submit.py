"""Words become operations: what is given is what is submitted."""

import socket

import pytest

from coordinator.cli.commands import AREAS
from coordinator.cli.main import run_area
from coordinator.cli.submit import parser_for
from coordinator.operations.catalogue import CATALOGUE, Entry
from coordinator.operations.registry import find_operation
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        (
            "gnt-instance add web1 -t sharedfile --disk 0:size=64M --disk 1:size=1G,mode=ro "
            "--net 0:link=br1 -I hail -B memory=1G,vcpus=2,auto_balance=no "
            "-H kvm:kernel_path=/vmlinuz,acpi=false,migration_downtime=50 --no-start --tags a,b",
            {
                "OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1",
                "disk_template": "sharedfile",
                "disks": [{"size": 64}, {"size": 1024, "mode": "ro"}],
                "nics": [{"link": "br1"}], "iallocator": "hail", "hypervisor": "kvm",
                "beparams": {"memory": 1024, "vcpus": 2, "auto_balance": False},
                "hvparams": {"kernel_path": "/vmlinuz", "acpi": False, "migration_downtime": 50},
                "start": False, "tags": ["a", "b"],
            },
        ),
        (
            "gnt-instance add web1 -t diskless -n beta -H kernel_path=default,no_acpi",
            {
                "OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1",
                "disk_template": "diskless", "pnode": "beta", "nics": [{}],
                "hvparams": {"kernel_path": "default", "acpi": False},
            },
        ),
        (
            "gnt-instance add web1 -t drbd -s 10G --no-nics -n beta:gamma",
            {
                "OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1", "disk_template": "drbd",
                "disks": [{"size": 10240}], "nics": [], "pnode": "beta", "snode": "gamma",
            },
        ),
        (
            "gnt-instance add web1 -t file -s 10G --no-nics --no-name-check --no-ip-check",
            {
                "OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1", "disk_template": "file",
                "disks": [{"size": 10240}], "nics": [],
            },
        ),
        (
            "gnt-instance start --force web1",
            {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1", "force": True},
        ),
        (
            "gnt-instance stop --timeout=5 --priority=high --reason=tidy web1",
            {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1", "timeout": 5,
             "priority": -10},
        ),
        (
            "gnt-instance modify -B memory=1G,vcpus=default -H acpi=no -O release=trixie -o noop "
            "--net add:link=br1 --net 0:remove --online --ignore-ipolicy web1",
            {
                "OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1",
                "beparams": {"memory": 1024, "vcpus": "default"}, "hvparams": {"acpi": False},
                "osparams": {"release": "trixie"}, "os_name": "noop",
                "nics": [["add", -1, {"link": "br1"}], ["remove", 0, {}]], "offline": False,
                "ignore_ipolicy": True,
            },
        ),
        (
            "gnt-instance modify --offline web1",
            {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1", "offline": True},
        ),
        (
            "gnt-cluster modify --distributed-files=",
            {"OP_ID": "OP_CLUSTER_SET_PARAMS", "distributed_files": []},
        ),
        (
            "gnt-group add --alloc-policy last_resort --node-parameters spindle_count=2 "
            "-D drbd:resync-rate=102400,dynamic-resync=yes -D plain:stripes=2 "
            "--ipolicy-vcpu-ratio 2.5 --ipolicy-disk-templates file,diskless attic",
            {
                "OP_ID": "OP_GROUP_ADD", "group_name": "attic", "alloc_policy": "last_resort",
                "ndparams": {"spindle_count": 2},
                "diskparams": {"drbd": {"resync-rate": 102400, "dynamic-resync": True},
                               "plain": {"stripes": 2}},
                "ipolicy": {"vcpu-ratio": 2.5, "disk-templates": ["file", "diskless"]},
            },
        ),
        (
            "gnt-group modify --ipolicy-spindle-ratio default --ipolicy-bounds-specs "
            "min:memory-size=128M,cpu-count=1,disk-count=0,disk-size=1,nic-count=0,spindle-use=0/"
            "max:memory-size=1G,cpu-count=2,disk-count=1,disk-size=2T,nic-count=1,spindle-use=1 x",
            {
                "OP_ID": "OP_GROUP_SET_PARAMS", "group_name": "x",
                "ipolicy": {
                    "spindle-ratio": "default",
                    "minmax": [
                        {
                            "min": {"memory-size": 128, "cpu-count": 1, "disk-count": 0,
                                    "disk-size": 1, "nic-count": 0, "spindle-use": 0},
                            "max": {"memory-size": 1024, "cpu-count": 2, "disk-count": 1,
                                    "disk-size": 2097152, "nic-count": 1, "spindle-use": 1},
                        },
                    ],
                },
            },
        ),
        (
            "gnt-cluster modify --ipolicy-spindle-ratio default --ipolicy-std-specs "
            "cpu-count=1,disk-count=1,disk-size=1G,memory-size=128M,nic-count=1,spindle-use=1",
            {
                "OP_ID": "OP_CLUSTER_SET_PARAMS",
                "ipolicy": {
                    "spindle-ratio": "default",
                    "std": {"cpu-count": 1, "disk-count": 1, "disk-size": 1024,
                            "memory-size": 128, "nic-count": 1, "spindle-use": 1},
                },
            },
        ),
        (
            "gnt-node modify-storage --allocatable no gamma lvm-pv /dev/sdb",
            {"OP_ID": "OP_NODE_MODIFY_STORAGE", "node_name": "gamma", "storage_type": "lvm-pv",
             "name": "/dev/sdb", "changes": False},
        ),
        (
            "gnt-instance grow-disk --absolute --no-wait-for-sync web1 data 1.5G",
            {"OP_ID": "OP_INSTANCE_GROW_DISK", "instance_name": "web1", "disk": "data",
             "amount": 1536, "absolute": True, "wait_for_sync": False},
        ),
        (
            "gnt-instance recreate-disks --disk 1:size=2G --disk 0 -n beta:gamma web1",
            {"OP_ID": "OP_INSTANCE_RECREATE_DISKS", "instance_name": "web1",
             "disks": [[1, {"size": 2048}], [0, {}]], "nodes": ["beta", "gamma"]},
        ),
        (
            "gnt-instance modify -f --disk 0:remove --disk add:size=1G --disk data:detach "
            "--disk 1:attach,uuid=x --disk root:mode=ro --hotplug web1",
            {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1", "hotplug": True,
             "disks": [
                 ["remove", 0, {}], ["add", -1, {"size": 1024}], ["detach", "data", {}],
                 ["attach", 1, {"uuid": "x"}], ["modify", "root", {"mode": "ro"}],
             ]},
        ),
        (
            "gnt-group assign-nodes -f attic gamma delta",
            {"OP_ID": "OP_GROUP_ASSIGN_NODES", "group_name": "attic",
             "nodes": ["gamma", "delta"], "force": True},
        ),
        (
            "gnt-group evacuate --to attic,cellar --sequential default",
            {"OP_ID": "OP_GROUP_EVACUATE", "group_name": "default",
             "target_groups": ["attic", "cellar"], "sequential": True},
        ),
        ("gnt-group rename attic loft",
         {"OP_ID": "OP_GROUP_RENAME", "group_name": "attic", "new_name": "loft"}),
        ("gnt-group remove loft", {"OP_ID": "OP_GROUP_REMOVE", "group_name": "loft"}),
        (
            "gnt-instance add-tags --reason=tidy web1 blue rack:7",
            {"OP_ID": "OP_TAGS_SET", "kind": "instance", "name": "web1",
             "tags": ["blue", "rack:7"]},
        ),
        ("gnt-cluster add-tags blue",
         {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": ["blue"]}),
        ("gnt-group remove-tags attic blue",
         {"OP_ID": "OP_TAGS_DEL", "kind": "nodegroup", "name": "attic", "tags": ["blue"]}),
        ("gnt-node remove-tags beta blue",
         {"OP_ID": "OP_TAGS_DEL", "kind": "node", "name": "beta", "tags": ["blue"]}),
        ("gnt-instance rename --no-name-check web1 shop",
         {"OP_ID": "OP_INSTANCE_RENAME", "instance_name": "web1", "new_name": "shop"}),
        (
            "gnt-instance reboot -t full web1",
            {"OP_ID": "OP_INSTANCE_REBOOT", "instance_name": "web1", "reboot_type": "full"},
        ),
        (
            "gnt-instance migrate -f -n beta web1",
            {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1", "target_node": "beta"},
        ),
        (
            "gnt-node modify -O yes -C no --node-parameters cpu_speed=1.5 beta",
            {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "beta", "offline": True,
             "master_candidate": False, "ndparams": {"cpu_speed": 1.5}},
        ),
        ("gnt-node modify -s 192.0.2.7 beta",
         {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "beta", "secondary_ip": "192.0.2.7"}),
        ("gnt-node powercycle --yes beta",
         {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "beta", "force": False}),
        ("gnt-node powercycle -f beta",
         {"OP_ID": "OP_NODE_POWERCYCLE", "node_name": "beta", "force": True}),
        ("gnt-debug delay 1.5", {"OP_ID": "OP_TEST_DELAY", "duration": 1.5, "no_locks": False}),
        ("gnt-debug delay --interruptible 1",
         {"OP_ID": "OP_TEST_DELAY", "duration": 1, "no_locks": False, "interruptible": True}),
        ("gnt-debug delay -l 1", {"OP_ID": "OP_TEST_DELAY", "duration": 1, "no_locks": True}),
        ("gnt-debug delay --no-master -n beta,gamma -r 2 1",
         {"OP_ID": "OP_TEST_DELAY", "duration": 1, "no_locks": False, "on_master": False,
          "on_nodes": ["beta", "gamma"], "repeat": 2}),
        ("gnt-debug test-osparams --os-parameters-secret a=b,c=d",
         {"OP_ID": "OP_TEST_OS_PARAMS", "osparams_secret": {"a": "b", "c": "d"}}),
        ("gnt-instance reinstall -f -d --debug web1",
         {"OP_ID": "OP_INSTANCE_REINSTALL", "instance_name": "web1", "debug_level": 2}),
        (
            "gnt-instance modify --net -1:remove --disk -1:add,size=1G -O -mirror -H -acpi web1",
            {
                "OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1",
                "nics": [["remove", -1, {}]], "disks": [["add", -1, {"size": 1024}]],
                "osparams": {"mirror": None}, "hvparams": {"acpi": None},
            },
        ),
        ("gnt-cluster verify --error-codes",
         {"OP_ID": "OP_CLUSTER_VERIFY", "error_codes": True}),
    ],
)  # fmt: skip
def test_words_become_an_operation(
    run: Run,
    submitted: list[list[dict[str, object]]],
    line: str,
    operation: dict[str, object],
) -> None:
    assert run(line) == (0, "", "")
    ((found,),) = submitted
    reason = found.pop("reason", None)
    assert found == operation
    if "--reason" in line:
        assert isinstance(reason, list)
        assert reason[0][:2] == ["gnt:client:gnt-instance", "tidy"]


def test_what_is_no_value_of_an_option_is_not_taken_for_one(
    run: Run, submitted: list[list[dict[str, object]]]
) -> None:
    for line in ("gnt-instance modify --net -f web1", "gnt-instance modify web1 --net"):
        assert "Argument --net: expected one argument" in run(line).err
    assert submitted == []
    assert run_area("gnt-cluster", ["modify", "--master-ip", ""]) == 0
    assert run("gnt-network rename lan -- wan").code == 0
    assert [job[0].get("master_ip", job[0].get("new_name")) for job in submitted] == ["", "wan"]


def test_tags_are_listed_and_searched_one_a_line(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.methods["QueryTags"] = lambda kind, name: [kind, name] if name else []
    assert run("gnt-group list-tags attic") == (0, "nodegroup\nattic\n", "")
    assert run("gnt-cluster list-tags") == (0, "", "")
    coordinator.script_job(result=[["/nodes/beta", "blue"], ["/cluster", "blue"]])
    found = run("gnt-cluster search-tags ^b")
    assert found == (0, "/cluster blue\n/nodes/beta blue\n", "")
    assert coordinator.submitted == [[{"OP_ID": "OP_TAGS_SEARCH", "pattern": "^b"}]]
    coordinator.script_job(result=[])
    assert run("gnt-cluster search-tags ^b") == (1, "", "")


def test_hosts_are_given_by_name_or_by_address(
    run: Run, submitted: list[list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {
        "beta.example.com": ["2001:db8::2", "192.0.2.2"], "beta": ["127.0.1.1"],
        "192.0.2.9": ["192.0.2.9"],
    }  # fmt: skip

    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return [(2, 1, 6, "", (address, 0)) for address in known[host]]

    monkeypatch.setattr("coordinator.cli.address.socket.getaddrinfo", look_up)
    assert run("gnt-node modify -s beta.example.com beta").code == 0
    assert run("gnt-node modify -s 192.0.2.9 beta").code == 0
    assert [job[0]["secondary_ip"] for job in submitted] == ["192.0.2.2", "192.0.2.9"]
    ran = run("gnt-node modify -s gamma.example.com beta")
    assert ran.code == 2
    assert "no name service knows a host of that name" in ran.err
    # The C library reads them as 0.0.3.231, 10.0.0.1, 8.0.0.1 and 192.0.2.4.
    for odd in ("999", "10.1", "010.0.0.1", "192.0.2.0x4"):
        ran = run(f"gnt-node modify -s {odd} beta")
        assert (ran.code, f"“{odd}” is no IP address, as in" in ran.err) == (2, True)
    ran = run("gnt-node modify -s beta beta")
    assert ran.code == 2
    assert "leads to 127.0.1.1 here" in ran.err


def test_several_objects_are_several_jobs(
    run: Run, submitted: list[list[dict[str, object]]]
) -> None:
    ran = run("gnt-instance startup --submit --print-jobid web1 web2")
    assert ran == (0, "41\n42\n", "JobID: 41\nJobID: 42\n")
    given = [job[0]["instance_name"] for job in submitted]
    assert given == ["web1.example.com", "web2.example.com"]


@pytest.mark.parametrize(
    "entry", [e for e in CATALOGUE.values() if e.command], ids=lambda entry: entry.command
)
def test_every_operation_with_a_command_can_be_given(entry: Entry) -> None:
    program, _, name = entry.command.partition(" ")
    assert AREAS[program].commands[name] is entry
    assert parser_for(entry.command, find_operation(entry.opcode), entry).format_help()
