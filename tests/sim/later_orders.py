"""Orders by chance about what comes after the first day: what is reserved, renamed or renewed."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from common.model.instance import Instance
from common.model.template import DiskTemplate
from common.names import ClusterName, InstanceName, MiB, NodeName
from coordinator.operations.base import Operation
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.cluster.rename import RenameCluster
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.commit import CommitInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.node.maintain import MaintainNode
from coordinator.operations.node.powercycle import PowercycleNode
from tests.sim.settings import create
from tests.sim.stories.reserved import reserved

Order = Operation[Any, Any]


def later_order(random: Random, nodes: Sequence[str], instances: Sequence[Instance]) -> Order:
    """Return one of them; most are about an instance that there is."""
    other = InstanceName(f"web{random.randrange(6)}")
    name = random.choice([each.name for each in instances] or [other])
    waiting = random.choice([each.name for each in instances if each.forthcoming] or [other])
    node = NodeName(random.choice(nodes))
    templates = (DiskTemplate.FILE, DiskTemplate.DRBD, DiskTemplate.PLAIN)
    plan = reserved(create(other, template=random.choice(templates)))
    expires = random.choice((None, "20s", "1h"))
    make: list[Callable[[], Order]] = [
        lambda: replace(plan, expires=expires),
        lambda: replace(plan, expires=expires, pnode=node),
        lambda: CommitInstance(instance_name=waiting, commit=True),
        lambda: CommitInstance(instance_name=waiting, commit=True, start=False),
        lambda: FailOverInstance(instance_name=waiting),
        lambda: RemoveInstance(instance_name=waiting, if_expired=True),
        lambda: RenameInstance(instance_name=name, new_name=other),
        lambda: ModifyInstance(instance_name=name, runtime_mem=MiB(random.randrange(32, 256))),
        lambda: ModifyInstance(instance_name=name, beparams={"minmem": 64, "maxmem": 256}),
        lambda: ModifyInstance(instance_name=waiting, expires=expires or "never"),
        lambda: RebootInstance(instance_name=name),
        lambda: MaintainNode(node_name=node, failover=random.random() < 0.3),
        lambda: MaintainNode(node_name=node, reboot=True),
        lambda: MaintainNode(node_name=node, back=True),
        lambda: PowercycleNode(node_name=node),
        lambda: RenewCrypto(node_certificates=True),
        lambda: RenewCrypto(node_certificates=True, nodes=(node,)),
        lambda: RenewCrypto(new_cluster_certificate=True),
        lambda: RenewCrypto(confd_hmac_key=True),
        lambda: RenameCluster(name=ClusterName(f"c{random.randrange(3)}.example.com")),
        RedistConf,
    ]
    return random.choice(make)()
