"""An instance that goes to another cluster: who gets its disks, and where they are expected."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.node import Node
from common.names import NodeName
from common.noderpc.copies import Compression, Stranger
from common.noderpc.instances import GuestSpec
from common.noderpc.operating_systems import OperatingSystems, Script
from coordinator.operations.backup.by_script import can_pass_on, export_run
from coordinator.operations.backup.prepare import name_of_key
from coordinator.operations.backup.trust import Destination, Place, Trust
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import Side
from coordinator.operations.steps.scripts import ScriptRun, complete
from coordinator.operations.steps.sent_disks import SentDisk


async def find_sender(
    cluster: Cluster,
    instance: Instance,
    guest: GuestSpec,
    at: Sequence[Destination],
    sources: Sequence[Side],
    *,
    whole_disks: bool,
) -> ScriptRun | None:
    """Return the script that writes what is sent; None: whole disks are sent.

    Raises:
        Conflict: the other cluster expects what a script writes, and there is none.
    """
    if not any(place.is_script for place in at):
        return None
    node = cluster.config.nodes[instance.primary_node].ref
    disks = [source.disk for source in sources]
    if whole_disks or not await can_pass_on(cluster, node, instance.os, disks, Script.EXPORT):
        raise Conflict(
            f"The other cluster expects what the script “export” of {instance.os} writes, which "
            f"is not run on {node} for this; prepare the export again, in the same way."
        )
    run = export_run(cluster.config, instance, guest, sources)
    order = complete(cluster, replace(run.order, disk=0, may_be_unknown=True), instance.osparams)
    await cluster.call(OperatingSystems, node).check(order=order)
    cluster.log(
        f"What is sent of each disk is what the script “export” of {instance.os} writes, and the "
        "other cluster's “import” makes a disk of that."
    )
    return run


class Away(Order):
    """Where an instance is sent, as the other cluster has told."""

    places: tuple[Place, ...]
    key_name: tuple[str, str, str] | None
    certificate: str | None

    def check(self, trust: Trust, instance: Instance, node: Node) -> tuple[Destination, ...]:
        """Return where its disks are expected.

        Raises:
            InvalidRequest: something is missing, or not of a cluster that is trusted.
            Conflict: the export was prepared for another node than it would be sent from.
        """
        if not (self.key_name and self.certificate):
            raise InvalidRequest(
                "To send an instance to another cluster, x509_key_name and destination_x509_ca "
                "have to be given, as prepare-export and the other cluster's job tell them."
            )
        if trust.read_key_name(self.key_name) != name_of_key(node):
            raise Conflict(
                f"The export of {instance.name} was prepared when it was on another node, or "
                f"{node.name} had another key; prepare it again."
            )
        trust.read_certificate(self.certificate)
        if len(self.places) != len(instance.disks):
            raise InvalidRequest(
                f"{instance.name} has {len(instance.disks)} disks, and the other cluster expects "
                f"{len(self.places)}."
            )
        at = tuple(trust.read_place(index, place) for index, place in enumerate(self.places))
        if len({place.is_script for place in at}) > 1:
            raise InvalidRequest("Either all disks are sent as they are, or scripts write all.")
        return at

    def disks(
        self,
        trust: Trust,
        at: Sequence[Destination],
        sources: Sequence[Side],
        *,
        compression: Compression,
        rate: int,
    ) -> tuple[SentDisk, ...]:
        """Return what is sent; all disks together take ``rate``."""
        certificate = trust.read_certificate(self.certificate or "")
        return tuple(
            SentDisk(
                index=index,
                source=source,
                peer=Stranger(name=NodeName(place.host), certificate=certificate),
                host=place.host,
                offer=place.offer,
                compression=compression,
                rate=-(-rate // len(sources)),
                beside=tuple(other for other in range(len(sources)) if other != index),
            )
            for index, (place, source) in enumerate(zip(at, sources, strict=True))
        )
