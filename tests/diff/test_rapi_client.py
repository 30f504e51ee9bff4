"""Ganeti's own client of the REST interface, every method of it, against ours."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from coordinator.operations.catalogue import CATALOGUE
from tests.diff.debian_ganeti import (
    COMMANDS,
    LIBRARIES,
    PYTHON,
    Served,
    needs_ganeti,
    served_cluster,
)
from tests.support.rapi import READER, WRITER, RapiProcess, rapi_process

pytestmark = needs_ganeti

# Reads calls as JSON, one a line; writes what came of each likewise.
PROGRAM = """
import json, sys
from ganeti.rapi import client
port, user, password = sys.argv[1:]
known = client.GanetiRapiClient("127.0.0.1", int(port), user or None, password or None)
for line in sys.stdin:
    method, args, named = json.loads(line)
    try:
        told = {"value": getattr(known, method)(*args, **named)}
    except client.GanetiApiError as error:
        told = {"error": str(error), "code": error.code}
    print(json.dumps(told), flush=True)
"""
METHODS = """
import json
from ganeti.rapi import client
methods = [name for name in vars(client.GanetiRapiClient) if name[0].isupper()]
print(json.dumps([name for name in methods if callable(getattr(client.GanetiRapiClient, name))]))
"""


class Told(NamedTuple):
    """``value`` if it went well, else the client's ``error`` and its ``code``."""

    value: Any = None
    error: str = ""
    code: int = 200


class GanetiClient:
    """A process with Ganeti's client in it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.called: set[str] = set()

    def __call__(self, method: str, *args: Any, **named: Any) -> Told:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.called.add(method)
        self._process.stdin.write(json.dumps([method, args, named]) + "\n")
        self._process.stdin.flush()
        return Told(**json.loads(self._process.stdout.readline()))

    def job(self, method: str, *args: Any, **named: Any) -> Any:
        """Call what submits a job, and return the result of its last operation.

        Raises:
            AssertionError: the call or the job did not go well.
        """
        told = self(method, *args, **named)
        assert isinstance(told.value, int), told
        assert self("WaitForJobCompletion", told.value, period=0.02, retries=500).value, method
        return self("GetJobStatus", told.value).value["opresult"][-1]


@contextmanager
def ganetis_client(port: int, user: tuple[str, str] = ("", "")) -> Iterator[GanetiClient]:
    with subprocess.Popen(
        [PYTHON, "-c", PROGRAM, str(port), *user],
        env=os.environ | {"PYTHONPATH": f"{COMMANDS}:{LIBRARIES}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield GanetiClient(process)
        finally:
            process.stdin.close() if process.stdin else None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("cluster")) as served:
        yield served


@pytest.fixture(scope="module")
def rapi(served: Served) -> Iterator[RapiProcess]:
    luxi = served.root / "var/run/ganeti/socket/ganeti-master"
    with rapi_process(served.root, luxi) as process:
        yield process


def test_every_method_does_what_ganetis_client_expects(rapi: RapiProcess) -> None:
    with ganetis_client(rapi.port, WRITER) as client:
        until_there(client)
        tell_of_the_cluster(client)
        tell_of_nodes(client)
        tell_of_groups(client)
        tell_of_an_instance(client)
        tell_of_jobs_and_queries(client)
        tell_of_filter_rules(client)
        tell_of_what_is_not_there_yet(client)
        every: Sequence[str] = ask_methods()
        assert not {*every} - client.called


def until_there(client: GanetiClient) -> None:
    """The daemon and the coordinator find each other."""
    while client("GetInfo").code == 502:
        pass


def tell_of_the_cluster(client: GanetiClient) -> None:
    assert client("GetVersion").value == 2
    assert "instance-create-reqv1" in client("GetFeatures").value
    info = client("GetInfo").value
    assert info["master"] == "alpha"
    assert info["vg_name"] == info["volume_group_name"]
    client.job("AddClusterTags", ["a", "b"])
    client.job("DeleteClusterTags", ["a"])
    assert client("GetClusterTags").value == ["b"]
    client.job("ModifyCluster", candidate_pool_size=7, reason="a try")
    assert client("GetInfo").value["candidate_pool_size"] == 7
    refused = client("ModifyCluster", compression_tools=["gzip"])
    assert refused.code == 403


def tell_of_nodes(client: GanetiClient) -> None:
    assert client("GetNodes").value == ["alpha", "beta", "gamma"]
    assert [row["role"] for row in client("GetNodes", bulk=True).value] == ["M", "C", "C"]
    assert client("GetNode", "beta").value["secondary_ip"] == "192.0.2.2"
    assert client("GetNodeRole", "beta").value == "master-candidate"
    client.job("SetNodeRole", "gamma", "drained", force=True)
    assert client("GetNodeRole", "gamma").value == "drained"
    client.job("SetNodeRole", "gamma", "regular")
    assert client("GetNodeRole", "gamma").value == "regular"
    client.job("SetNodeRole", "gamma", "master-candidate")
    client.job("ModifyNode", "gamma", ndparams={"spindle_count": 3})
    assert client("GetNode", "gamma").value["ndparams"]["spindle_count"] == 3
    client.job("AddNodeTags", "beta", ["fast"])
    assert client("GetNodeTags", "beta").value == ["fast"]
    client.job("DeleteNodeTags", "beta", ["fast"])
    cycled = client("PowercycleNode", "nobody", force=True).value
    client("WaitForJobCompletion", cycled, period=0.02, retries=500)
    assert client("GetJobStatus", cycled).value["opresult"][0][1][1] == "unknown_entity"
    units = client.job("GetNodeStorageUnits", "beta", "file", "name,size,free")
    assert units
    assert client("ModifyNodeStorageUnits", "beta", "lvm-pv", "/dev/sdz", allocatable=True).value
    assert client("RepairNodeStorageUnits", "beta", "lvm-vg", "xenvg").value
    assert client("GetNode", "nobody").code == 404


def tell_of_groups(client: GanetiClient) -> None:
    client.job("CreateGroup", "rack2", alloc_policy="last_resort")
    assert client("GetGroups").value == ["default", "rack2"]
    assert len(client("GetGroups", bulk=True).value) == 2
    client.job("ModifyGroup", "rack2", alloc_policy="preferred")
    assert client("GetGroup", "rack2").value["alloc_policy"] == "preferred"
    client.job("RenameGroup", "rack2", "rack3")
    client.job("AddGroupTags", "rack3", ["cold"])
    assert client("GetGroupTags", "rack3").value == ["cold"]
    client.job("DeleteGroupTags", "rack3", ["cold"])
    client.job("AssignGroupNodes", "rack3", ["gamma"], force=True)
    assert client("GetGroup", "rack3").value["node_list"] == ["gamma"]
    client.job("AssignGroupNodes", "default", ["gamma"])
    client.job("DeleteGroup", "rack3")
    assert client("GetGroups").value == ["default"]


DISKS = [{"size": 64}]
NICS: list[dict[str, Any]] = [{}]
GIVEN: dict[str, Any] = {"os": "noop", "no_install": True, "beparams": {"memory": 64}}


def tell_of_an_instance(client: GanetiClient) -> None:
    where = {"pnode": "beta", **GIVEN}
    would = client(
        "CreateInstance", "create", "web1", "sharedfile", DISKS, NICS, dry_run=1, **where
    )
    assert would.value
    client.job("CreateInstance", "create", "web1", "sharedfile", DISKS, NICS, **where)
    assert client("GetInstances").value == ["web1"]
    assert client("GetInstances", bulk=True).value[0]["beparams"]["memory"] == 64
    assert client("GetInstance", "web1").value["status"] == "running"
    assert client("GetInstanceConsole", "web1").value["instance"] == "web1"
    client.job("AddInstanceTags", "web1", ["x"])
    assert client("GetInstanceTags", "web1").value == ["x"]
    client.job("DeleteInstanceTags", "web1", ["x"])
    client.job("RebootInstance", "web1", reboot_type="hard", ignore_secondaries=False)
    client.job("MigrateInstance", "web1", mode="live", target_node="gamma")
    assert client("GetInstance", "web1").value["pnode"] == "gamma"
    client.job("FailoverInstance", "web1", target_node="beta")
    client.job("ShutdownInstance", "web1", no_remember=False, timeout=0)
    assert client("GetInstance", "web1").value["status"] == "ADMIN_down"
    assert client("GetInstanceConsole", "web1").code == 503
    client.job("ModifyInstance", "web1", custom_beparams={"vcpus": 2})
    assert client("GetInstance", "web1").value["beparams"]["vcpus"] == 2
    client.job("GrowInstanceDisk", "web1", 0, 64)
    assert client("GetInstance", "web1").value["disk.sizes"] == [128]
    client.job("ActivateInstanceDisks", "web1", ignore_size=True)
    client.job("DeactivateInstanceDisks", "web1", force=True)
    assert client("RecreateInstanceDisks", "web1", disks=[0]).value
    assert client("ReplaceInstanceDisks", "web1", disks=[0], mode="replace_auto").value
    assert client.job("PrepareExport", "web1", "local") is None
    client.job("ExportInstance", "web1", "local", "gamma", shutdown=True)
    client.job("RenameInstance", "web1", "web2", ip_check=False, name_check=False)
    client.job("StartupInstance", "web2")
    one = client("InstanceAllocation", "create", "web3", "sharedfile", DISKS, NICS, **GIVEN).value
    made = client.job("InstancesMultiAlloc", [one])
    assert made["allocatable"] == ["web3"]
    assert client("EvacuateNode", "beta", mode="primary-only").value
    assert client("MigrateNode", "beta", mode="live").value
    uuid = client("GetInstance", "web2").value["uuid"]
    assert client("GetInstance", uuid).value["name"] == "web2"


def tell_of_jobs_and_queries(client: GanetiClient) -> None:
    jobs = client("GetJobs").value
    assert jobs
    assert client("GetJobs", bulk=True).value[0].keys() == {
        "id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts",
    }  # fmt: skip
    status = client("GetJobStatus", jobs[0]).value
    assert status["id"] == jobs[0]
    told = client("WaitForJobChange", jobs[0], ["id", "status"], None, None).value
    assert told["job_info"] == [jobs[0], "success"]
    assert client("CancelJob", jobs[0]).value[0] is False
    assert client("GetJobStatus", 10**6).code == 404
    rows = client("Query", "node", ["name", "role"], ["==", "name", "alpha"]).value
    assert rows["data"] == [[[0, "alpha"], [0, "M"]]]
    fields = client("QueryFields", "instance", ["name", "status"]).value["fields"]
    assert [field["name"] for field in fields] == ["name", "status"]
    number = client("DeleteInstance", "web2", dry_run=True).value
    assert client("WaitForJobCompletion", number, period=0.02, retries=500).value is not None
    client.job("DeleteInstance", "web2")
    assert "web2" not in client("GetInstances").value


def tell_of_filter_rules(client: GanetiClient) -> None:
    rule = {
        "priority": 3,
        "predicates": [["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]],
        "action": ["RATE_LIMIT", 2],
    }
    uuid = client("AddFilter", *rule.values(), [["gnt:user", "maintenance", 1]]).value
    assert client("GetFilters").value == [uuid]
    told = client("GetFilter", uuid).value
    assert told.items() >= rule.items()
    assert client("GetFilters", bulk=True).value == [told]
    assert client("ReplaceFilter", uuid, 0, [], "CONTINUE").value == uuid
    assert client("GetFilter", uuid).value["action"] == "CONTINUE"
    assert client("AddFilter", 0, [], "HALT").code == 400
    assert client("DeleteFilter", uuid).code == 200
    assert client("GetFilter", uuid).code == 404


def tell_of_what_is_not_there_yet(client: GanetiClient) -> None:
    """Refused with a reason, as long as the operation is not in the catalogue."""
    network = ("GetNetwork", "ConnectNetwork", "DisconnectNetwork", "ModifyNetwork")
    assert client("GetNetworks").value == []
    assert client(network[0], "lan").code == 404
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {
        "CreateNetwork": ("OP_NETWORK_ADD", ("lan", "192.0.2.0/24")),
        "ConnectNetwork": ("OP_NETWORK_CONNECT", ("lan", "default", "bridged", "br0")),
        "DisconnectNetwork": ("OP_NETWORK_DISCONNECT", ("lan", "default")),
        "ModifyNetwork": ("OP_NETWORK_SET_PARAMS", ("lan",)),
        "DeleteNetwork": ("OP_NETWORK_REMOVE", ("lan",)),
        "GetInstanceInfo": ("OP_INSTANCE_QUERY_DATA", ("web3",)),
        "ReinstallInstance": ("OP_INSTANCE_REINSTALL", ("web3",)),
        "PrepareExport": ("OP_BACKUP_PREPARE", ("web3", "remote")),
        "RedistributeConfig": ("OP_CLUSTER_REDIST_CONF", ()),
        "GetOperatingSystems": ("OP_OS_DIAGNOSE", ()),
    }
    for method, (opcode, args) in calls.items():
        told = client(method, *args)
        if opcode in CATALOGUE:
            assert told.code == 200, (method, told)
        else:
            assert told.code == 501, (method, told)
    for method, args in {
        "GetNetworkTags": ("lan",),
        "AddNetworkTags": ("lan", ["x"]),
        "DeleteNetworkTags": ("lan", ["x"]),
    }.items():
        assert client(method, *args).code in {200, 400, 404, 501}, method


def test_who_may_only_read_changes_nothing(rapi: RapiProcess) -> None:
    with ganetis_client(rapi.port, READER) as client:
        until_there(client)
        assert client("GetNodes").value
        assert client("Query", "node", ["name"]).value
        assert client("AddClusterTags", ["x"]).code == 403
    with ganetis_client(rapi.port) as client:
        assert client("GetNodes").value
        assert client("Query", "node", ["name"]).code == 401
        assert client("AddClusterTags", ["x"]).code == 401
    with ganetis_client(rapi.port, ("writer", "wrong")) as client:
        assert client("GetNodes").code == 401


def ask_methods() -> list[str]:
    from tests.diff.debian_ganeti import ask_libraries

    told: list[str] = ask_libraries(METHODS)
    return told
