"""Orders that cannot be carried out: each is refused with a sentence, and nothing is changed."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity, NodeFailure, NotFound
from common.model.template import DiskTemplate
from common.names import MiB, NodeName
from common.tls.keys import make_temporary
from common.tls.token import make_token
from coordinator.operations.base import read_operation
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.devices import NicRequest
from coordinator.operations.node.add import AddNode
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import BEGINNING, ip_of

OLD_MAC = "aa:00:00:0d:0d:0d"
CREATE = {
    "OP_ID": "OP_INSTANCE_CREATE", "instance_name": "web1", "disk_template": "sharedfile",
    "disks": [{"size": "64M"}],
}  # fmt: skip


def _about(kind: str, **fields: object) -> dict[str, object]:
    return {"OP_ID": f"OP_{kind}", **fields}


ORDERS: list[tuple[Mapping[str, object], type[GntError], str]] = [  # and how each is refused
    (CREATE | {"pnode": "nowhere"}, NotFound, "no node “nowhere”"),
    (CREATE | {"instance_name": "old1"}, Conflict, "There is an instance old1 already"),
    (CREATE | {"instance_name": "Web_1!"}, InvalidRequest, "no instance name"),
    (CREATE | {"disks": [{"size": "12Q"}]}, InvalidRequest, "“12Q” is no size"),
    (CREATE | {"disks": [{"size": 0}]}, InvalidRequest, "at least 1 MiB"),
    (CREATE | {"disks": [{"size": "1T"}]}, NoCapacity, "where 1048576 are needed"),
    (
        CREATE | {"disks": [{"size": "500T"}]},
        GntError, "allows 1 to 1048576 MiB a disk, not 524288000",
    ),
    (CREATE | {"disks": [{"size": "1T"}], "pnode": "beta"}, NoCapacity, "left in the dir"),
    (CREATE | {"disks": []}, InvalidRequest, "Say what disks it gets"),
    (CREATE | {"disk_template": "diskless"}, InvalidRequest, "diskless has no disks"),
    (CREATE | {"disk_template": "rbd"}, InvalidRequest, "rbd is not enabled"),
    (CREATE | {"disk_template": "floppy"}, InvalidRequest, "disk_template"),
    (CREATE | {"hypervisor": "xen-pvm"}, InvalidRequest, "xen-pvm is not enabled"),
    (CREATE | {"hvparams": {"warp": 9}}, InvalidRequest, "warp"),
    (CREATE | {"beparams": {"memory": "lots"}}, InvalidRequest, "“lots” is no size"),
    (CREATE | {"beparams": {"memory": "30G"}, "pnode": "small"}, NotFound, "small"),
    (CREATE | {"beparams": {"memory": "40G"}, "pnode": "beta"}, Conflict,
     "allows 32 to 32768 MiB of memory, not 40960. Use --ignore-ipolicy"),
    (
        CREATE | {"beparams": {"memory": "400G"}, "pnode": "beta", "ignore_ipolicy": True},
        NoCapacity, "memory free",
    ),
    (CREATE | {"nics": [{"mac": "aa:bb"}]}, InvalidRequest, "“aa:bb” is no MAC address"),
    (
        CREATE | {"nics": [{"link": "br9"}], "pnode": "beta"},
        NodeFailure, "bridge 'br9' does not exist",
    ),
    (CREATE | {"nics": [{"mac": "01:00:00:00:00:01"}]}, InvalidRequest, "group of machines"),
    (CREATE | {"nics": [{"mac": "aa:00:00:00:00:01"}] * 2}, Conflict, "given to 2 nics"),
    (CREATE | {"nics": [{"mac": OLD_MAC.upper()}]}, Conflict, "0d is taken by a nic of old1"),
    (CREATE | {"nics": [{"ip": "not an ip"}]}, InvalidRequest, "“not an ip” is no IP address"),
    (CREATE | {"nics": [{"ip": "300.1.1.1"}]}, InvalidRequest, "“300.1.1.1” is no IP address"),
    (CREATE | {"nics": [{}] * 9}, InvalidRequest, "at most 8 nics; 9 were asked for"),
    (CREATE | {"disks": [{"size": 1}] * 17}, InvalidRequest, "at most 16 disks; 17 were"),
    (CREATE | {"nics": [{"mode": "macvtap"}]}, InvalidRequest, "'macvtap'"),
    (CREATE | {"nics": [{"vlan": ".7:7"}]}, InvalidRequest, r"E: nics\[0\]: vlan .*each once"),
    (
        CREATE | {"beparams": {"vcpus": -3}, "ignore_ipolicy": True},
        InvalidRequest, "vcpus is a whole number, at least 1",
    ),
    (
        CREATE | {"beparams": {"vcpus": "-3"}, "ignore_ipolicy": True},
        InvalidRequest, "vcpus is a whole number, at least 1",
    ),
    (CREATE | {"beparams": {"minmem": 512, "maxmem": 256}}, InvalidRequest, "minmem, 512 MiB"),
    (CREATE | {"iallocator": "magic"}, NotFound, "no allocator “magic”"),
    (CREATE | {"os_type": "../debian"}, InvalidRequest, "no name of an operating system"),
    (CREATE | {"mode": "import"}, InvalidRequest, "“src_node” is missing"),
    (_about("INSTANCE_STARTUP", instance_name="nope"), NotFound, "no instance “nope”"),
    (_about("INSTANCE_REMOVE", instance_name="nope"), NotFound, "no instance “nope”"),
    (_about("INSTANCE_CONSOLE", instance_name="down1"), Conflict, "down1 is not running"),
    (_about("INSTANCE_MIGRATE", instance_name="down1"), Conflict, "gnt-instance failover"),
    (
        _about("INSTANCE_MIGRATE", instance_name="old1", target_node="beta"),
        Conflict, "old1 is on beta already",
    ),
    (
        _about("INSTANCE_MIGRATE", instance_name="old1", target_node="alpha", iallocator="."),
        InvalidRequest, "not both",
    ),
    (
        _about("INSTANCE_MIGRATE", instance_name="old1", target_node="alpha", mode="lively"),
        InvalidRequest, "mode",
    ),
    (_about("INSTANCE_MIGRATE", instance_name="local1"), Conflict, "has file disks"),
    (
        _about("INSTANCE_REBOOT", instance_name="down1", reboot_type="soft"),
        Conflict, "cannot be reset",
    ),
    (_about("INSTANCE_REBOOT", instance_name="old1", reboot_type="x"), InvalidRequest, "x"),
    (_about("NODE_SET_PARAMS", node_name="alpha", offline=True), Conflict, "is the master"),
    (_about("NODE_SET_PARAMS", node_name="beta"), InvalidRequest, "Nothing to change"),
    (
        _about("NODE_SET_PARAMS", node_name="beta", offline=True, drained=True),
        InvalidRequest, "only one of them",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="beta", vm_capable=False),
        Conflict, "has instances",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="beta", ndparams={"colour": "red"}),
        InvalidRequest, "colour",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="gamma", master_candidate=False),
        Conflict, "--auto-promote",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="beta", offline=True),
        Conflict, "has instances .*--force",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="beta", secondary_ip="no ip"),
        InvalidRequest, "“no ip” is no IP address",
    ),
    (
        _about("NODE_SET_PARAMS", node_name="beta", secondary_ip="0.0.0.0"),
        InvalidRequest, "“0.0.0.0” is the address of no single machine",
    ),
    (
        _about("NODE_ADD", node_name="eta", primary_ip="ff02::1", token="secret"),
        InvalidRequest, "“ff02::1” is the address of no single machine",
    ),
    (_about("NODE_REMOVE", node_name="alpha"), Conflict, "is the master"),
    (_about("NODE_REMOVE", node_name="beta"), Conflict, "still has instances"),
    (_about("NODE_POWERCYCLE", node_name="alpha"), Conflict, "--force"),
    (_about("CLUSTER_DESTROY"), Conflict, r"still has instances \(3\)"),
    (_about("TEST_DELAY", duration=-1), InvalidRequest, "A delay takes"),
    (_about("TEST_DELAY", duration=1, on_nodes=["none"]), NotFound, "none"),
    (
        _about("NODE_ADD", node_name="eta", primary_ip="192.0.2.9", token="secret"),
        InvalidRequest, "no join token",
    ),
]  # fmt: skip


def test_each_is_refused_and_nothing_changes() -> None:
    """All are given to one cluster, which is the same after each of them."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            await _set_scene(cluster)
            before = await cluster.snapshot()
            for order, error, complaint in ORDERS:
                try:
                    await _check_refused(cluster, order, error, complaint)
                    assert before.differences(await cluster.snapshot()) == []
                except BaseException as failure:
                    failure.add_note(f"the order was {order}")
                    raise

    simulate(scenario())


async def _check_refused(
    cluster: SimulatedCluster, order: Mapping[str, object], error: type[GntError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint) as caught:
        await cluster.run(read_operation(dict(order)))
    assert "internal error" not in caught.value.message
    assert caught.value.message.rstrip().endswith((".", "”", "?")), caught.value.message


async def _set_scene(cluster: SimulatedCluster) -> None:
    """Let there be instances that run, that do not, and that cannot be moved."""
    cluster.shared.capacity = MiB(100_000)
    enabled = cluster.config.cluster.enabled_disk_templates
    without = tuple(template for template in enabled if template != DiskTemplate.RBD)
    await cluster.run(ModifyCluster(enabled_disk_templates=without))
    jobs = [
        await cluster.submit(replace(create("old1", "beta"), nics=(NicRequest(mac=OLD_MAC),))),
        await cluster.submit(create("down1", "gamma", start=False)),
        await cluster.submit(create("local1", "beta", template=DiskTemplate.FILE)),
    ]
    for number in jobs:
        await cluster.finished(number)


def test_a_token_of_another_node_is_refused() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            before = await cluster.snapshot()
            for token in (make_token(make_temporary(now=BEGINNING).certificate),):
                with pytest.raises(InvalidRequest, match="another certificate"):
                    await cluster.run(_add_delta(str(token)))
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_token_is_not_kept_when_the_job_has_ended() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            token = str(cluster.machines["delta"].token)
            await cluster.run(_add_delta(token))
            assert not any(token in str(job) for job in cluster.state.jobs.values())

    simulate(scenario())


def test_a_dead_hypervisor_is_told_by_its_name() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            order = {**CREATE, "hypervisor": "kvm", "pnode": "beta"}
            cluster.machines["beta"].has_hypervisor = False
            await cluster.machines["beta"].kill_noded()
            await cluster.machines["beta"].start_noded()
            with pytest.raises(NodeFailure, match="no hypervisor “kvm”"):
                await cluster.run(read_operation(order))

    simulate(scenario())


def _add_delta(token: str) -> AddNode:
    return AddNode(node_name=NodeName("delta"), primary_ip=ip_of("delta"), token=token)
