"""A bad parameter that an older version let in is told of, harms nobody else, and is put right."""

from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.model.policy import InstancePolicy
from common.names import NodeName
from coordinator.operations.base import read_operation
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.state.rows import Put
from tests.sim.settings import WEB1, added, changed, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

BAD: dict[str, Any] = {
    "hvparams": {"kvm": {"floppy_image_path": "/x"}, "vmware": {"a": 1}},
    "nicparams": {"lnk": "br0"},
    "ndparams": {"foo": 1},
    "diskparams": {"drbd": {"protocol": "D"}, "tape": {"reels": 2}},
    "beparams": {"vcpus": -3, "spindle_use": "many"},
    "candidate_pool_size": -3,
    "mac_prefix": "zz",
    "enabled_disk_templates": ("sharedfile", "foo"),
}
REPAIR = ModifyCluster(
    hvparams={"kvm": {"floppy_image_path": "default"}, "vmware": {"a": "default"}},
    nicparams={"lnk": "default"}, ndparams={"foo": "default"},
    diskparams={"drbd": {"protocol": "default"}, "tape": {"reels": "default"}},
    beparams={"vcpus": 1, "spindle_use": "default"}, candidate_pool_size=3,
    mac_prefix="aa:00:00", enabled_disk_templates=("sharedfile", "file"),
)  # fmt: skip


async def store_bad(cluster: SimulatedCluster, **fields: Any) -> None:
    store = cluster.master.running.store
    present = store.state.config.cluster
    await store.commit([Put(replace(present, **fields))])


async def told(cluster: SimulatedCluster) -> list[str]:
    info = await cluster.master.luxi("QueryClusterInfo")
    complaints: list[str] = info["bad_parameters"]
    return complaints


def test_bad_values_are_named_harm_nobody_else_and_are_put_right() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("old1", "beta"))
            await store_bad(cluster, **{k: v for k, v in BAD.items() if k != "mac_prefix"})
            complaints = " ".join(await told(cluster))
            for word in ("floppy_image_path", "vmware", "lnk", "foo", "vcpus", "spindle_use",
                         "candidate_pool_size", "enabled_disk_templates"):  # fmt: skip
                assert word in complaints
            await cluster.run(create("web1"))
            await cluster.run(StartInstance(instance_name=create("old1").instance_name))
            (findings, *_) = [await cluster.run(VerifyConfig(findings=True))]
            assert "floppy_image_path" in str(findings)
            await cluster.run(replace(REPAIR, mac_prefix=None))
            assert await told(cluster) == []

    simulate(scenario())


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("beparams", {"vcpus": -3}, "backend parameters of web1: vcpus"),
        ("hvparams", {"acpi": "perhaps"}, "hypervisor parameters of web1: acpi"),
        ("nicparams", {"mode": "warp"}, "nic parameters of web1: mode"),
    ],
)
def test_an_instance_with_a_bad_value_of_its_own_is_not_started_with_a_default_in_its_place(
    field: str, value: dict[str, Any], says: str
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            web1 = cluster.config.instance("web1")
            (nic,) = cluster.config.nics_of(web1)
            bad = replace(nic if field == "nicparams" else web1, **{field: value})
            await cluster.master.running.store.commit([Put(bad)])
            with pytest.raises(InvalidRequest, match=says):
                await cluster.run(StartInstance(instance_name=web1.name))
            assert not await cluster.machines["beta"].guest_list()

    simulate(scenario())


@pytest.mark.parametrize("field", sorted(BAD))
def test_each_can_be_put_right_while_the_others_are_bad(field: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await store_bad(cluster, **BAD)
            before = await told(cluster)
            await cluster.run(ModifyCluster(**{field: getattr(REPAIR, field)}))
            after = await told(cluster)
            assert set(after) < set(before)

    simulate(scenario())


REFUSED: list[tuple[dict[str, Any], str]] = [  # and what is said of each
    ({"hvparams": {"kvm": {"floppy_image_path": "/x"}}}, "floppy_image_path"),
    ({"hvparams": {"vmware": {"a": 1}}}, "no hypervisor “vmware”"),
    ({"nicparams": {"lnk": "br0"}}, "lnk"),
    ({"nicparams": {"mode": "macvtap"}}, "macvtap"),
    ({"ndparams": {"foo": 1}}, "foo"),
    ({"diskparams": {"drbd": {"foo": 1}}}, "disk parameters (drbd): there is no “foo”"),
    ({"diskparams": {"tape": {"reels": 2}}}, "no disk template “tape”; known are diskless"),
    ({"beparams": {"vcpus": -3}}, "vcpus"),
    ({"beparams": {"minmem": "2G"}}, "is more than maxmem"),
    ({"beparams": {"vcpus": "9" * 5000}}, "vcpus is a whole number, not text"),
    ({"candidate_pool_size": -3}, "candidate_pool_size"),
    ({"mac_prefix": "zz"}, "“zz” is no beginning"),
    ({"enabled_disk_templates": ["drbd", "foo"]}, "enabled_disk_templates"),
    ({"enabled_disk_templates": ["file"]}, "web1 has the disk template sharedfile"),
    ({"enabled_hypervisors": ["vmware"]}, "no hypervisor “vmware”"),
    ({"enabled_hypervisors": ["fake"]}, "web1 has the hypervisor kvm"),
    ({"file_storage_dir": "relative"}, "path from /"),
    ({"max_running_jobs": 0}, "max_running_jobs"),
    ({"ipolicy": {"colour": 1}}, "policy of the cluster has no “colour”; it has minmax"),
    ({"ipolicy": {"vcpu-ratio": -1}}, "vcpu-ratio is a number above 0"),
    ({"ipolicy": {"minmax": []}}, "would allow everything"),
    ({"ipolicy": {"disk-templates": ["tape"]}}, "not “tape”"),
    ({"ipolicy": {"std": {"memory-size": 1}}}, "the standard size of instances"),
    (
        {
            "ipolicy": {
                "std": {
                    "memory-size": 2**30,
                    "cpu-count": 1,
                    "disk-count": 1,
                    "disk-size": 1024,
                    "nic-count": 1,
                    "spindle-use": 1,
                }
            }
        },
        "is within none of the bounds",
    ),
    ({"default_iallocators": {"allocate": ":hail"}}, "“” is no name of an allocator"),
    ({"default_iallocators": {"allocate": [""]}}, "“” is no name of an allocator"),
    ({"default_iallocator_params": {"static-kvm-node-memory": "9" * 20}}, "number of MiB"),
]


def test_a_bad_value_is_refused_before_anything_is_stored() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            before = cluster.state.config
            for given, says in REFUSED:
                with pytest.raises(GntError) as refused:
                    await cluster.run(read_operation({"OP_ID": "OP_CLUSTER_SET_PARAMS"} | given))
                assert says in refused.value.message, given
                assert cluster.state.config == before, given

    simulate(scenario())


def test_a_change_for_all_that_an_instance_cannot_bear_names_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(replace(create("web1", "beta"), beparams={"maxmem": 256}))
            with pytest.raises(InvalidRequest, match=r"parameters of web1.*is more than maxmem"):
                await cluster.run(ModifyCluster(beparams={"minmem": "512M", "maxmem": "1G"}))

    simulate(scenario())


def test_the_policy_of_the_cluster_is_changed_and_who_is_outside_of_it_is_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            policy = {"disk-templates": ["file"], "vcpu-ratio": 2}
            job = await cluster.finished(await cluster.submit(ModifyCluster(ipolicy=policy)))
            assert "The policy does not allow web1 any more" in str(job.ops[0].log)
            stored = cluster.config.cluster.ipolicy
            assert (stored.disk_templates, stored.vcpu_ratio) == (("file",), 2.0)
            with pytest.raises(Conflict, match="does not allow web2"):
                await cluster.run(create("web2", "beta", start=False))
            again = ModifyCluster(ipolicy={"vcpu-ratio": "default", "disk-templates": "default"})
            job = await cluster.finished(await cluster.submit(again))
            assert "does not allow" not in str(job.ops[0].log)
            assert cluster.config.cluster.ipolicy == InstancePolicy()

    simulate(scenario())


def test_of_several_bad_values_one_is_named_and_the_others_are_counted() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match=r"There is one more like this\.$"):
                await cluster.run(ModifyCluster(beparams={"vcpus": 0, "warp": 9}))
            with pytest.raises(InvalidRequest, match=r"There are 2 more like this\.$"):
                await cluster.run(ModifyCluster(beparams={"vcpus": 0, "warp": 9, "weft": 9}))

    simulate(scenario())


def test_an_empty_list_of_allocators_has_nodes_named() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(default_iallocators={"allocate": ""}))
            with pytest.raises(InvalidRequest, match="no default allocator for “allocate”"):
                await cluster.run(create("web1"))

    simulate(scenario())


def test_a_prefix_of_addresses_may_be_given_in_capitals() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(mac_prefix="AA:BB:CC"))
            await cluster.run(create("web1", "beta"))
            (nic,) = cluster.config.nics_of(cluster.config.instance("web1"))
            assert nic.mac.startswith("aa:bb:cc:")

    simulate(scenario())


def test_an_instance_is_started_with_less_memory_by_its_one_name_for_both_bounds() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            name = create("web1").instance_name
            await cluster.run(create("web1", "beta", start=False))
            await cluster.run(StartInstance(instance_name=name, beparams={"memory": "64M"}))
            (guest,) = await cluster.machines["beta"].guest_list()
            assert guest.memory == 64

    simulate(scenario())


def test_changes_at_the_same_time_are_all_kept() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            changes: list[dict[str, Any]] = [
                {"beparams": {"vcpus": 2}}, {"beparams": {"maxmem": "1G"}},
                {"beparams": {"auto_balance": False}}, {"nicparams": {"link": "br7"}},
            ]  # fmt: skip
            jobs = [await cluster.submit(ModifyCluster(**change)) for change in changes]
            for job in jobs:
                await cluster.finished(job)
            stored = cluster.state.config.cluster
            assert stored.beparams == {"auto_balance": False, "maxmem": 1024, "vcpus": 2}
            assert stored.nicparams == {"link": "br7"}

    simulate(scenario())


def test_a_node_s_own_bad_value_is_refused_and_a_stored_one_put_right() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            store = cluster.master.running.store
            beta = store.state.config.node(NodeName("beta"))
            await store.commit([Put(replace(beta, ndparams={"foo": 1, "ssh_port": 0}))])
            change = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "beta"}
            with pytest.raises(InvalidRequest, match="colour"):
                await cluster.run(read_operation(change | {"ndparams": {"colour": "red"}}))
            await cluster.run(read_operation(change | {"ndparams": {"foo": "default"}}))
            await cluster.run(read_operation(change | {"ndparams": {"ssh_port": "default"}}))
            assert store.state.config.node("beta").ndparams == {}

    simulate(scenario())


def test_no_nic_becomes_routed_without_an_address_that_leads_to_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await cluster.run(create("web1", "beta", start=False))
            routed = {"mode": "routed", "link": "main"}
            lacks = r"^Nic [01] of web1 is routed, and has no address to which that leads.$"
            for order in (
                ModifyInstance(instance_name=WEB1, nics=(changed(0, routed),)),
                ModifyInstance(instance_name=WEB1, nics=(added(-1, routed),)),
                ModifyCluster(nicparams=routed),
            ):
                with pytest.raises(InvalidRequest, match=lacks):
                    await cluster.run(order)
            addressed = changed(0, routed | {"ip": "192.0.2.7"})
            await cluster.run(ModifyInstance(instance_name=WEB1, nics=(addressed,)))
            await cluster.run(ModifyCluster(nicparams=routed))
            plugged = added(-1, {"mode": "bridged", "link": "br0"})
            await cluster.run(ModifyInstance(instance_name=WEB1, nics=(plugged,)))
            without = ModifyInstance(instance_name=WEB1, nics=(changed(0, {"ip": "none"}),))
            with pytest.raises(InvalidRequest, match=lacks):
                await cluster.run(without)
            nic, _ = cluster.config.nics_of(cluster.config.instance("web1"))
            await cluster.master.running.store.commit([Put(replace(nic, ip=""))])
            await cluster.run(ModifyInstance(instance_name=WEB1, beparams={"vcpus": 2}))
            job = await cluster.finished(await cluster.submit(VerifyConfig()))
            assert "Nic 0 of web1 is routed" in " ".join(e.message for e in job.ops[0].log)

    simulate(scenario())
