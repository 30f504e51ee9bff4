"""Stories of the whole cluster."""

from msgspec.structs import replace

from common.names import ClusterName, MiB
from common.tls.rest import make_pair
from coordinator.operations.cluster.destroy import DestroyCluster
from coordinator.operations.cluster.master_ip import ActivateMasterIp, DeactivateMasterIp
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.cluster.rename import RenameCluster
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.cluster.repair_disk_sizes import RepairDiskSizes
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.cluster.verify_group import VerifyGroup
from tests.sim.settings import DISTRIBUTED, distribute, web1_on
from tests.support.cluster import SimulatedCluster
from tests.support.image import BEGINNING
from tests.support.seeds import is_thorough
from tests.support.story import Story


async def web1_of_another_size(cluster: SimulatedCluster) -> None:
    await web1_on("gamma")(cluster)
    disks = cluster.shared.disks
    (path,) = disks
    disks[path] = replace(disks[path], size=MiB(96))


async def with_address(cluster: SimulatedCluster) -> None:
    await cluster.run(ModifyCluster(master_ip="192.0.2.100", master_netdev="eth0"))


async def with_idle_address(cluster: SimulatedCluster) -> None:
    await with_address(cluster)
    await cluster.run(DeactivateMasterIp())


async def with_a_file_to_distribute(cluster: SimulatedCluster) -> None:
    distribute(cluster)
    await cluster.run(ModifyCluster(distributed_files=(DISTRIBUTED,)))


STORIES = {
    "redistribute": Story(RedistConf(), with_a_file_to_distribute),
    "activate the master's address": Story(ActivateMasterIp(), with_idle_address),
    "deactivate the master's address": Story(DeactivateMasterIp(), with_address),
    "rename the cluster": Story(RenameCluster(name=ClusterName("roman.example.com"))),
    "renew certificates": Story(RenewCrypto(node_certificates=True)),
    "show clients of REST a new certificate": Story(RenewCrypto(new_rapi_certificate=True)),
    "show clients of REST another certificate": Story(
        RenewCrypto(rapi_certificate=make_pair("rest.example.com", (), BEGINNING)), has_secret=True
    ),
    "renew the key of confd": Story(RenewCrypto(confd_hmac_key=True)),
    "change the cluster": Story(
        ModifyCluster(
            default_iallocators={"allocate": "hail", "relocate": "none"},
            default_iallocator_params={"static-kvm-node-memory": "0"}, max_running_jobs=30,
        )
    ),
    "do without volumes": Story(
        ModifyCluster(vg_name="", enabled_disk_templates=("sharedfile", "diskless"))
    ),
    "change the policy": Story(
        ModifyCluster(ipolicy={"vcpu-ratio": 2.0, "disk-templates": ["sharedfile"]})
    ),
    "record the size of a disk": Story(
        RepairDiskSizes(), web1_of_another_size, uncertain=frozenset({"config disk web1 disk 0"})
    ),  # of what is not seen, nothing is recorded
    "verify": Story(VerifyCluster(), web1_on("gamma")),
    "verify the configuration": Story(VerifyConfig(), web1_on("gamma")),
    "verify a group": Story(VerifyGroup(group_name="default"), web1_on("gamma")),
    "destroy": Story(
        DestroyCluster(), again=DestroyCluster(), successor="",
        uncertain=frozenset({"members beta", "members gamma"}),
    ),
}  # fmt: skip

if (
    is_thorough()
):  # it has many steps that are alike; tests/sim/test_new_authority.py has the others
    STORIES["replace the authority"] = Story(RenewCrypto(new_cluster_certificate=True))
