"""Exports: instances that are kept on a node, and made anew from there."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NotFound
from common.model.instance import AdminState
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB, NetworkName
from coordinator.operating_systems.parameters import private_parameters
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.backup.remove import RemoveExport
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.specs import disk_spec
from coordinator.state.rows import Put
from tests.sim.settings import WEB1, added, disk, web1_with_data
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

DATA = "data of web1"
EXPORT = ExportInstance(instance_name=WEB1, target_node="beta")
SHOP = InstanceName("shop")

FROM_ELSEWHERE = """
[export]
version = 0
timestamp = 1700000000
source = node1.example.com
os = debootstrap+default
compression = none
[instance]
name = shop
maxmem = 256
minmem = 256
memory = 256
vcpus = 2
disk_template = plain
hypervisor = kvm
tags = blue
nic0_mac = aa:00:00:11:22:33
nic0_ip = None
nic0_network = None
nic0_name = None
nic0_mode = bridged
nic0_link = br0
nic0_vlan =
nic_count = 1
disk0_ivname = disk/0
disk0_dump = 5f1ac4a2
disk0_size = 64
disk0_name = None
disk_count = 1
[hypervisor]
acpi = False
kernel_path =
spice_bind = 127.0.0.1
use_chroot = True
vnc_bind_address = None
[backend]
maxmem = 256
minmem = 256
memory = 256
vcpus = 2
always_failover = False
[os]
release = bookworm
[os_private]
"""


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, with data on a disk that only gamma has."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_with_data(cluster)
            await story(cluster)

    simulate(scenario())


def written(cluster: SimulatedCluster, node: str) -> list[str]:
    return list(cluster.machines[node].files.contents.values())


def test_an_instance_that_was_removed_is_made_anew_as_it_was() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyInstance(
            instance_name=WEB1, beparams={"memory": "256M"},
            hvparams={"acpi": False, "disk_cache": "none"},
        ))  # fmt: skip
        config = cluster.config
        before = config.instance("web1")
        assert await cluster.run(EXPORT) == [True, [True]]
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert written(cluster, "gamma") == []
        await cluster.run(ImportInstance(instance_name=WEB1, src_node="beta", pnode="alpha"))
        after = cluster.config.instance("web1")
        assert written(cluster, "alpha") == [DATA]
        for same in ("beparams", "hvparams", "hypervisor", "disk_template", "tags", "os"):
            assert getattr(after, same) == getattr(before, same)
        macs = [[nic.mac for nic in c.nics_of(i)]
                for c, i in ((config, before), (cluster.config, after))]  # fmt: skip
        assert macs[0] == macs[1]
        assert not any((await cluster.snapshot()).guests.values())

    tell(story)


@pytest.mark.parametrize("template", [DiskTemplate.FILE, DiskTemplate.DRBD])
def test_what_is_made_from_an_export_is_started_with_its_data_if_that_is_said(
    template: DiskTemplate,
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        snode = "gamma" if template is DiskTemplate.DRBD else None
        await cluster.run(ImportInstance(
            instance_name=SHOP, src_node="beta", src_path="web1", pnode="alpha", snode=snode,
            disk_template=template, start=True,
        ))  # fmt: skip
        config = cluster.config
        shop = config.instance("shop")
        assert shop.admin_state is AdminState.UP
        assert (await cluster.snapshot()).guests["alpha"] == {"shop": "running"}
        (spec,) = (disk_spec(config, shop, disk) for disk in config.disks_of(shop))
        assert cluster.machines["alpha"].written.read(spec) == DATA

    tell(story)


def test_an_instance_is_removed_once_its_export_is_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta",
                                         remove_instance=True))  # fmt: skip
        assert cluster.config.find_instance("web1") is None
        assert cluster.machines["gamma"].local_disks == []
        assert cluster.machines["beta"].local_disks == ["export web1"]

    tell(story)


def test_another_instance_of_an_export_has_its_own_addresses() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        await cluster.run(ImportInstance(
            instance_name=SHOP, src_node="beta", src_path="/var/lib/gantry/export/web1",
            pnode="alpha", disk_template=DiskTemplate.SHAREDFILE, disks=(DiskRequest(size=80),),
        ))  # fmt: skip
        config = cluster.config
        web1, shop = config.instance("web1"), config.instance("shop")
        assert list(cluster.shared.contents.values()) == [DATA]
        assert [disk.size for disk in config.disks_of(shop)] == [80]
        assert config.nics_of(web1)[0].mac != config.nics_of(shop)[0].mac

    tell(story)


def test_exports_are_listed_and_deleted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        told = await cluster.master.luxi("QueryExports", [])
        assert told == {"alpha": [], "beta": ["web1"], "gamma": []}
        await cluster.run(RemoveExport(instance_name=WEB1))
        assert cluster.machines["beta"].local_disks == []
        with pytest.raises(NotFound, match="No node has an export web1"):
            await cluster.run(RemoveExport(instance_name=WEB1))

    tell(story)


def test_what_changes_is_not_exported() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(InvalidRequest, match="leave --noshutdown out"):
            await cluster.run(
                ExportInstance(instance_name=WEB1, target_node="beta", shutdown=False)
            )

    tell(story)


def test_an_import_that_makes_no_sense_is_refused_beforehand() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(EXPORT)
        with pytest.raises(NotFound, match="no export shop on beta"):
            await cluster.run(ImportInstance(instance_name=SHOP, src_node="beta"))
        with pytest.raises(Conflict, match="There is an instance web1 already"):
            await cluster.run(ImportInstance(instance_name=WEB1, src_node="beta"))
        with pytest.raises(InvalidRequest, match="is to have 8 MiB; the one in the export"):
            await cluster.run(ImportInstance(
                instance_name=SHOP, src_node="beta", src_path="web1", pnode="alpha",
                disks=(DiskRequest(size=8),),
            ))  # fmt: skip

    tell(story)


def test_an_export_of_another_cluster_is_imported_if_it_has_whole_disks() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        exports = cluster.machines["beta"].exports
        exports.finished["shop"] = FROM_ELSEWHERE, {"5f1ac4a2": MiB(64)}
        exports.words["shop/5f1ac4a2"] = "data of a shop"
        order = ImportInstance(
            instance_name=SHOP, src_node="beta", disk_template=DiskTemplate.FILE, pnode="alpha"
        )
        await cluster.run(order)
        shop = cluster.config.instance("shop")
        assert written(cluster, "alpha") == ["data of a shop"]
        assert (shop.os, shop.tags, shop.osparams) == (
            "debootstrap+default", ("blue",), {"release": "bookworm"},
        )  # fmt: skip
        assert shop.hvparams == {"acpi": False, "spice_bind": "127.0.0.1", "use_chroot": True}
        assert shop.beparams == {"maxmem": 256, "minmem": 256, "vcpus": 2}
        assert [nic.mac for nic in cluster.config.nics_of(shop)] == ["aa:00:00:11:22:33"]
        await cluster.run(RemoveInstance(instance_name=SHOP))
        exports.finished["shop"] = FROM_ELSEWHERE, {"5f1ac4a2": MiB(17)}
        with pytest.raises(InvalidRequest, match=r"made by a script .* debootstrap\+default"):
            await cluster.run(order)
        exports.finished["shop"] = FROM_ELSEWHERE, {}
        with pytest.raises(InvalidRequest, match="lacks the file 5f1ac4a2"):
            await cluster.run(order)
        exports.finished["shop"] = "[export]\n", {}
        with pytest.raises(InvalidRequest, match="cannot be read"):
            await cluster.run(order)

    tell(story)


def test_mirrored_disks_are_exported_and_made_again_on_two_nodes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(ModifyInstance(
            instance_name=WEB1, disk_template=DiskTemplate.DRBD, remote_node="alpha"
        ))  # fmt: skip
        await cluster.run(EXPORT)
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(ImportInstance(
            instance_name=WEB1, src_node="beta", pnode="beta", snode="gamma"
        ))  # fmt: skip
        for node in ("beta", "gamma"):
            assert DATA in cluster.machines[node].contents.values()
        assert cluster.machines["alpha"].contents == {}
        await cluster.run(StartInstance(instance_name=WEB1))

    tell(story)


def test_what_is_said_of_an_import_takes_the_place_of_what_was() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        was = {"release": "old", "arch": "amd64"}
        await cluster.run(ModifyInstance(instance_name=WEB1, os_name="noop", osparams=was))
        await cluster.run(EXPORT)
        await cluster.run(ImportInstance(
            instance_name=SHOP, src_node="beta", src_path="web1", pnode="alpha", no_nics=True,
            osparams={"release": "new"}, osparams_private={"password": "hush"},
        ))  # fmt: skip
        shop = cluster.config.instance("shop")
        assert shop.osparams == {"release": "new", "arch": "amd64"}
        assert shop.nics == ()
        assert private_parameters(cluster.state, shop.os, shop.uuid) == {"password": "hush"}
        both = ImportInstance(
            instance_name=InstanceName("both"), src_node="beta", src_path="web1", pnode="alpha",
            no_nics=True, nics=(NicRequest(),),
        )  # fmt: skip
        with pytest.raises(InvalidRequest, match="or that it shall have none"):
            await cluster.run(both)

    tell(story)


def test_what_an_older_version_has_exported_with_two_of_a_name_is_imported() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyInstance(
            instance_name=WEB1, disks=(disk("add", size=64),), nics=(added(-1),),
        ))  # fmt: skip
        web1 = cluster.config.instance("web1")
        disks, nics = cluster.config.disks_of(web1), cluster.config.nics_of(web1)
        twins = [replace(each, name="data") for each in disks]
        others = [replace(each, name="lan") for each in nics]
        await cluster.master.running.store.commit([*map(Put, twins), *map(Put, others)])
        assert len(twins) == len(others) == 2
        await cluster.run(EXPORT)
        await cluster.run(ImportInstance(
            instance_name=SHOP, src_node="beta", src_path="web1", pnode="alpha"
        ))  # fmt: skip
        shop = cluster.config.instance("shop")
        assert [disk.name for disk in cluster.config.disks_of(shop)] == ["data", ""]
        assert [nic.name for nic in cluster.config.nics_of(shop)] == ["lan", ""]

    tell(story)


def test_an_address_that_somebody_has_is_imported_if_that_is_wished() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(AddNetwork(network_name=NetworkName("lan"), network="198.51.100.0/24"))
        await cluster.run(ConnectNetwork(network_name=NetworkName("lan"), group_name="default"))
        await cluster.run(EXPORT)
        twice = ImportInstance(
            instance_name=SHOP, src_node="beta", src_path="web1", pnode="alpha",
            nics=(NicRequest(ip="198.51.100.7"),),
        )  # fmt: skip
        with pytest.raises(Conflict, match="--no-conflicts-check"):
            await cluster.run(twice)
        await cluster.run(replace(twice, conflicts_check=False))

    tell(story)
