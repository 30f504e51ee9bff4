"""An instance that comes from another cluster: who may bring it, and where it is expected."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from common.errors import InvalidRequest
from common.messages import Order
from common.model.node import Node, NodeRef
from common.names import NodeName
from common.noderpc.copies import Offer, Stranger
from common.noderpc.operating_systems import Script, ScriptOrder, Subject
from coordinator.disks.kind import DiskKind
from coordinator.operations.backup.by_script import can_pass_on
from coordinator.operations.backup.prepare import certificate_of
from coordinator.operations.backup.renaming import plan_renaming, rename_within
from coordinator.operations.backup.trust import Destination, Trust, trust_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step
from coordinator.operations.steps.between_clusters import check_new_enough
from coordinator.operations.steps.carriers import Scripts, WholeDisks
from coordinator.operations.steps.copies import side_of
from coordinator.operations.steps.expected_disks import (
    ExpectedDisk,
    confirm_received,
    expect_disks,
    let_go_of_received,
)
from coordinator.operations.steps.scripts import ScriptRun

CONNECT_S = 180.0  # beyond what the instance may take to stop
MODE = "remote-import"  # Ganeti's word, for the creation and for what its log tells


_PLUGGED = frozenset({"mode", "link", "vlan"})  # what a network says of its nics


def as_told(given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a creation without what Ganeti's tools put where there is nothing."""
    told = dict(given)
    for devices in ("disks", "nics"):
        every = given.get(devices)
        if isinstance(every, list | tuple):
            told[devices] = [_without_nothing(each) for each in every]
    return told


def _without_nothing(device: Any) -> Any:
    if not isinstance(device, dict):
        return device
    own = {key: value for key, value in device.items() if value not in (None, "", "None")}
    return {k: v for k, v in own.items() if not (own.get("network") and k in _PLUGGED)}


class Receiving(Order):
    """What a new instance's disks are filled with, and what the other cluster is told for that."""

    address: str  # of the node that expects them
    certificate: str  # of that node, signed
    salt: str
    disks: tuple[ExpectedDisk, ...]
    script: ScriptRun | None = None  # that makes the disks of what comes
    renaming: ScriptRun | None = None  # that makes its name known on them


class Source(Order):
    """Who sends an instance, as the other cluster has told."""

    handshake: tuple[Any, ...] | None
    certificate: str | None
    instance: str | None
    shutdown_timeout: float

    def check(self, trust: Trust) -> tuple[Stranger, bool]:
        """Return who brings the disks, and whether he can send what a script writes of them.

        Raises:
            InvalidRequest: something is missing, or not of a cluster that is trusted.
        """
        if not (self.handshake and self.certificate and self.instance):
            raise InvalidRequest(
                "To take an instance from another cluster, source_handshake, source_x509_ca and "
                "source_instance_name have to be given, as its prepare-export tells them."
            )
        by_script = trust.check_handshake(self.handshake)
        certificate = trust.read_certificate(self.certificate)
        name = NodeName(f"the node of {self.instance}")
        return Stranger(name=name, certificate=certificate), by_script


async def plan_receiving(
    cluster: Cluster,
    source: Source,
    kind: DiskKind,
    node: Node,
    nodes: Sequence[NodeRef],
    subject: Subject,
) -> Receiving:
    """Return how disks are filled: by the script “import” if both sides have theirs.

    Raises:
        InvalidRequest: see ``Source.check``.
    """
    trust, salt = trust_of(cluster.state), cluster.new_uuid()
    peer, by_script = source.check(trust)
    await check_new_enough(cluster, node.ref)
    disks = subject.disks
    if not disks:  # it would be started at once, while it still runs there
        raise InvalidRequest(
            f"{source.instance} has no disks, and nothing that could be sent: make it anew here."
        )
    run = ScriptRun(
        node=node.ref,
        order=ScriptOrder(script=Script.IMPORT, subject=subject),
        attach=kind.before_start(nodes),
        detach=kind.after_stop(nodes),
    )
    script = None
    if by_script and await can_pass_on(cluster, node.ref, subject.os, disks, Script.IMPORT):
        cluster.log(f"The script “import” of {subject.os} makes its disks of what comes.")
        script = run
    elif by_script:
        cluster.log(
            f"The other cluster has a script “export” of {subject.os}, and {node.name} has no "
            "“import” that can be run: all that is on the disks is taken."
        )
    return Receiving(
        script=script,
        renaming=await plan_renaming(cluster, run, str(source.instance)),
        address=node.primary_ip,
        certificate=trust.sign_certificate(await certificate_of(cluster, node), salt),
        salt=salt,
        disks=tuple(
            ExpectedDisk(
                index=index,
                target=side_of(kind, nodes, spec),
                peer=peer,
                wait_s=CONNECT_S + source.shutdown_timeout,
                beside=tuple(other for other in range(len(disks)) if other != index),
                to_be_confirmed=True,
            )
            for index, spec in enumerate(disks)
        ),
    )


def receive_disks(
    cluster: Cluster,
    name: str,
    receiving: Receiving,
    added: Step,
    full: Callable[[ScriptOrder], ScriptOrder],
) -> Iterator[Step]:
    """Fill the disks of a new instance, and add it to the configuration, which ``added`` does.

    Programs are told where the disks are expected. When all has come it is recorded, and then it
    is nowhere else any more: it stays, though it may not be renamed within, or not start.
    """

    def announce(offers: Sequence[Offer]) -> None:
        trust = trust_of(cluster.state)
        places = [
            trust.name_place(
                index,
                Destination(receiving.address, offer, is_script=receiving.script is not None),
                receiving.salt,
            )
            for index, offer in enumerate(offers)
        ]
        cluster.announce(MODE, {"disks": places, "x509_ca": receiving.certificate})

    script = receiving.script
    carrier = Scripts(cluster, script, full) if script else WholeDisks()
    expected = expect_disks(cluster, name, receiving.disks, announce, carrier)
    yield replace(expected, edit=added.edit)
    yield confirm_received(cluster, name, receiving.disks, carrier)
    yield let_go_of_received(cluster, name, receiving.disks, carrier)
    if (renaming := receiving.renaming) is not None:
        yield from rename_within(cluster, renaming, partial(full, renaming.order))
