"""Where the answers to queries come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.model.job import Job
from common.model.node import Node
from common.model.pool import Pool
from common.names import JobId, NodeName
from common.noderpc.disks import DiskReport, Disks
from common.noderpc.exports import Exports
from common.noderpc.facts import Facts, NodeFacts
from common.noderpc.instances import GuestReport, Instances
from common.noderpc.mirrors import MirrorReport, Mirrors
from common.noderpc.operating_systems import DefinitionReport, OperatingSystems
from common.noderpc.providers import ProviderReport, Providers
from coordinator.locks.report import LockRow
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.nodes.heard import Heard
from coordinator.nodes.silence import Silence
from coordinator.operating_systems.known import KnownOs
from coordinator.queries.live import Answers, Asker, Specs
from coordinator.state.archive import Archive
from coordinator.state.state import State


@dataclass(frozen=True, slots=True)
class Source:
    """One moment of the cluster, and whom to ask for the rest."""

    state: State
    asker: Asker
    locks: Callable[[], Sequence[LockRow]] = tuple
    waits: Callable[[JobId], str] = lambda _: ""  # what a job waits for, in words
    heard: Heard = field(default_factory=Heard)  # what nodes told before
    silence: Silence = field(default_factory=Silence)  # who has not answered lately
    archive: Archive | None = None
    exports: Mapping[NodeName, tuple[str, ...] | None] = field(default_factory=dict)  # if asked for
    systems: tuple[KnownOs, ...] = ()  # likewise
    providers: Sequence[Mapping[str, Any]] = ()  # likewise
    archived: Mapping[JobId, Job] = field(default_factory=dict)  # of those what is asked for


@dataclass(frozen=True, slots=True)
class NodeAsker:
    """Asks the nodes themselves."""

    nodes: Nodes

    async def guests(self, nodes: Iterable[Node]) -> Answers[tuple[GuestReport, ...]]:
        return await each({n.uuid: self.nodes.service(Instances, n).guests() for n in nodes})

    async def definitions(self, nodes: Iterable[Node]) -> Answers[tuple[DefinitionReport, ...]]:
        calls = {n.uuid: self.nodes.service(OperatingSystems, n).definitions() for n in nodes}
        return await each(calls)

    async def providers(self, nodes: Iterable[Node]) -> Answers[tuple[ProviderReport, ...]]:
        return await each({n.uuid: self.nodes.service(Providers, n).providers() for n in nodes})

    async def exports(self, nodes: Iterable[Node]) -> Answers[tuple[str, ...]]:
        return await each({n.uuid: self.nodes.service(Exports, n).exports() for n in nodes})

    async def mirrors(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[MirrorReport | None, ...]]:
        calls = {n.uuid: self.nodes.service(Mirrors, n).status(disks=specs) for n, specs in disks}
        return await each(calls)

    async def disks(
        self, disks: Sequence[tuple[Node, Specs]]
    ) -> Answers[tuple[DiskReport | None, ...]]:
        calls = {n.uuid: self.nodes.service(Disks, n).find(disks=specs) for n, specs in disks}
        return await each(calls)

    async def facts(
        self, nodes: Iterable[Node], *, storage: tuple[Pool, ...]
    ) -> Answers[NodeFacts]:
        return await each(
            {n.uuid: self.nodes.service(Facts, n).facts(storage=storage) for n in nodes}
        )
