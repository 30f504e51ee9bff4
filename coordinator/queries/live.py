"""What only the nodes know, asked for once a query."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from common.errors import GntError
from common.model.node import Node
from common.model.pool import Pool
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import DiskReport, DiskSpec
from common.noderpc.facts import NodeFacts
from common.noderpc.instances import GuestReport
from common.noderpc.mirrors import MirrorReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from coordinator.disks.diagnosis import Told as MirrorsTold
from coordinator.disks.kinds import mirrored_on, pools_of, thin_on
from coordinator.nodes.heard import Heard, Told
from coordinator.queries.field import Missing, Needs
from coordinator.state.config import Config

T = TypeVar("T")
Specs = tuple[DiskSpec, ...]
Answers = Mapping[NodeId, T | GntError]


class Asker(Protocol):
    """Asks several nodes at once, each one call; an answer or an error for each."""

    async def guests(self, nodes: Iterable[Node]) -> Answers[tuple[GuestReport, ...]]: ...

    async def definitions(self, nodes: Iterable[Node]) -> Answers[tuple[DefinitionReport, ...]]: ...

    async def providers(self, nodes: Iterable[Node]) -> Answers[tuple[ProviderReport, ...]]: ...

    async def exports(self, nodes: Iterable[Node]) -> Answers[tuple[str, ...]]: ...

    async def facts(
        self, nodes: Iterable[Node], *, storage: tuple[Pool, ...]
    ) -> Answers[NodeFacts]: ...

    async def mirrors(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[MirrorReport | None, ...]]: ...

    async def disks(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[DiskReport | None, ...]]: ...


@dataclass
class Live:
    """What the nodes answered; empty until ``ask`` was awaited."""

    guests: Answers[tuple[GuestReport, ...]] = field(default_factory=dict)
    facts: Answers[NodeFacts] = field(default_factory=dict)
    mirrors: Mapping[NodeId, MirrorsTold] = field(default_factory=dict)  # who has answered
    taken: Mapping[NodeId, Mapping[DiskId, MiB]] = field(default_factory=dict)  # by thin disks
    ages_s: Mapping[NodeId, float] = field(default_factory=dict)  # of what is not new
    silent_s: Mapping[NodeId, float] = field(default_factory=dict)  # of who is silent
    past: "Live | None" = None  # what the nodes that did not answer told before
    _where: dict[InstanceId, dict[NodeId, GuestReport]] = field(default_factory=dict)

    async def ask(
        self, needs: Iterable[Needs], nodes: Iterable[Node], config: Config, asker: Asker
    ) -> None:
        """Ask for what is needed.

        Guests are asked of every node that may have some, whatever ``nodes`` says: one can be
        elsewhere than it should. Offline nodes are not asked.
        """
        for need in sorted(set(needs)):
            match need:
                case Needs.GUESTS:
                    hosts = [n for n in config.sorted_nodes() if n.vm_capable and not n.offline]
                    self.guests = await asker.guests(hosts)
                    self._where = _by_guest(self.guests)
                case Needs.FACTS:
                    online = [node for node in nodes if not node.offline]
                    self.facts = await asker.facts(online, storage=pools_of(config))
                case Needs.MIRRORS:
                    asked = mirrored_on(config, {node.uuid for node in nodes})
                    answers = await asker.mirrors(
                        [(config.nodes[node], specs) for node, specs in asked.items()]
                    )
                    self.mirrors = {
                        node: {spec.id: report for spec, report in zip(specs, answer, strict=True)}
                        for node, specs in asked.items()
                        if not isinstance(answer := answers[node], GntError)
                    }
                case Needs.THIN:
                    thin = thin_on(config, {node.uuid for node in nodes})
                    found = await asker.disks(
                        [(config.nodes[node], specs) for node, specs in thin.items()]
                    )
                    self.taken = {
                        node: {
                            each.id: each.allocated
                            for each in answer
                            if each is not None and each.allocated is not None
                        }
                        for node, answer in found.items()
                        if not isinstance(answer, GntError)
                    }
                case Needs.CONFIG:
                    pass

    def recall(self, heard: Heard, now_s: float) -> None:
        """Look up what the nodes that did not answer told before."""
        last_guests = _recalled(self.guests, heard.guests)
        last_facts = _recalled(self.facts, heard.facts)
        guests = {node: told.value for node, told in last_guests.items()}
        self.past = Live(
            guests=guests,
            facts={node: told.value for node, told in last_facts.items()},
            ages_s={
                node: now_s - told.asked_s
                for last in (last_guests, last_facts)
                for node, told in last.items()
            },
            _where=_by_guest(guests),
        )

    def and_of(self, node_guests: Answers[Any], node_facts: Answers[Any]) -> "Live":
        """Return this with what some nodes have answered since."""
        guests = {**self.guests, **node_guests}
        return Live(guests=guests, facts={**self.facts, **node_facts}, _where=_by_guest(guests))

    def hosts_of(self, instance: InstanceId) -> Mapping[NodeId, GuestReport]:
        """Return the nodes that have a guest for the instance, usually one."""
        return self._where.get(instance, {})

    def facts_of(self, node: Node) -> NodeFacts | Missing:
        """Return what a node told of itself, or why it did not."""
        return value_of(self.facts, node)


def value_of(answers: Answers[T], node: Node) -> T | Missing:
    """Return what ``node`` answered, or why there is no answer."""
    if node.offline:
        return Missing.OFFLINE
    answer = answers.get(node.uuid)
    return Missing.NO_DATA if answer is None or isinstance(answer, GntError) else answer


def _recalled(
    answers: Answers[T], last: Callable[[NodeId], Told[T] | None]
) -> dict[NodeId, Told[T]]:
    silent = (node for node, answer in answers.items() if isinstance(answer, GntError))
    return {node: told for node in silent if (told := last(node)) is not None}


def _by_guest(
    guests: Answers[tuple[GuestReport, ...]],
) -> dict[InstanceId, dict[NodeId, GuestReport]]:
    found: dict[InstanceId, dict[NodeId, GuestReport]] = {}
    for node, answer in guests.items():
        if not isinstance(answer, GntError):
            for guest in answer:
                found.setdefault(guest.id, {})[node] = guest
    return found
