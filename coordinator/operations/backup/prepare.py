"""Tell another cluster what it has to know of one from which it is to get an instance."""

from typing import Annotated, Any

from common.errors import InvalidRequest, NodeFailure
from common.messages import Order
from common.model.node import Node
from common.noderpc.identity import Identity
from common.noderpc.operating_systems import Script
from coordinator.locks.names import Wanted
from coordinator.operations.backup.by_script import can_pass_on
from coordinator.operations.backup.trust import trust_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.specs import present_guest
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config

LOCAL, REMOTE = "local", "remote"


class PreparedExport(Order):
    """What programs carry to the other cluster; nothing in it is secret."""

    told: dict[str, Any] | None


@operation("OP_BACKUP_PREPARE")
class PrepareExport(Operation[None, PreparedExport], kw_only=True):
    """Tell what another cluster has to know before an instance is sent there."""

    instance_name: InstanceArgument
    mode: Annotated[str, hidden("“local” or “remote”")]
    whole_disks: Annotated[bool, hidden("also if its operating system has a script")] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> PreparedExport:
        check_mode(self.mode)
        instance = cluster.config.instance(self.instance_name)
        node = cluster.config.nodes[instance.primary_node]
        check_online(node)
        if self.mode == LOCAL:
            return PreparedExport(told=None)
        trust, salt = trust_of(cluster.state), cluster.new_uuid()
        disks = present_guest(cluster.config, instance).disks
        by_script = not self.whole_disks and await can_pass_on(
            cluster, node.ref, instance.os, disks, Script.EXPORT
        )
        return PreparedExport(
            told={
                "handshake": trust.handshake(salt, by_script=by_script),
                "x509_key_name": trust.name_key(name_of_key(node), salt),
                "x509_ca": trust.sign_certificate(await certificate_of(cluster, node), salt),
            }
        )

    def result(self, plan: PreparedExport) -> dict[str, Any] | None:
        return plan.told


def check_mode(mode: str) -> None:
    if mode not in (LOCAL, REMOTE):
        raise InvalidRequest(f"Instances are exported “{LOCAL}” or “{REMOTE}”, not “{mode}”.")


def name_of_key(node: Node) -> str:
    """Name what a node proves to others who it is with."""
    return f"{node.name} {node.key}"


async def certificate_of(cluster: Cluster, node: Node) -> str:
    """Return a node's certificate, in PEM form, for another cluster to know it by."""
    who = await cluster.call(Identity, node).who()
    if not who.certificate:
        raise NodeFailure(
            f"{node.name} does not tell its certificate: its noded is too old; upgrade it.",
            node=node.name,
        )
    return who.certificate
