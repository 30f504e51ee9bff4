"""What ``gnt-cluster verify`` can find, and what it looks at."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from common.errors import GntError
from common.model.node import Node
from common.model.stamp import Stamp
from common.names import DiskId, InstanceName, NodeId, NodeName
from common.noderpc.disks import VolumeListing
from common.noderpc.facts import NodeFacts
from common.noderpc.files import FileReport
from common.noderpc.instances import GuestReport
from common.noderpc.mastership import Ballot
from common.noderpc.mirrors import MirrorDevice
from common.noderpc.network import TapReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from common.noderpc.roster import HeldRoster
from coordinator.disks.diagnosis import Told
from coordinator.state.config import Config


class Severity(StrEnum):
    ERROR = "ERROR"
    WARNING = "WARNING"
    NOTICE = "NOTICE"  # worth a word, not a fault


class Finding(NamedTuple):
    """``code`` is one of Ganeti's, as in ``ignore_errors``."""

    code: str
    kind: str  # node, instance, group, cluster
    name: str
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.severity}: {self.kind} {self.name}: {self.message}"


class NodeReport(NamedTuple):
    """Everything one node said of itself."""

    facts: NodeFacts
    guests: Sequence[GuestReport]
    taps: Sequence[TapReport]
    disk_files: Sequence[str]
    volumes: Sequence[VolumeListing]
    bad_disks: Mapping[DiskId, str]  # what is wrong within what they are kept in
    ssconf: Mapping[str, FileReport]
    ballot: Ballot
    roster: HeldRoster
    links: Mapping[str, bool]
    mirrors: Told
    devices: Sequence[MirrorDevice]
    systems: Sequence[DefinitionReport]
    providers: Sequence[ProviderReport]  # of external storage
    master_device: str  # which has the address that goes with the mastership; "": none
    files: Mapping[str, str]  # digests of those that are to be the same on all nodes, by path
    programs: Mapping[str, str]  # why those that switch nodes would not be run, by path
    asked_at: float  # our clock, half-way between question and answer


class Seen(NamedTuple):
    """The configuration, and what every node that is not offline answered."""

    config: Config
    nodes: Mapping[NodeId, NodeReport | GntError]
    stamp: Stamp
    ssconf: Mapping[str, str]  # digests as they should be
    version: str
    members: frozenset[NodeId] | None = None  # the nodes that are looked at; None: all
    troubles: Mapping[NodeName, GntError] = {}  # why candidates cannot take commits
    outside_policy: Mapping[InstanceName, str] = {}  # why, as a clause

    def concerns(self, node: NodeId) -> bool:
        """Tell whether a node is one of those that are looked at."""
        return self.members is None or node in self.members

    def answered(self) -> list[tuple[Node, NodeReport]]:
        """Return the nodes that answered, by name."""
        return [
            (node, report)
            for node in self.config.sorted_nodes()
            if isinstance(report := self.nodes.get(node.uuid), NodeReport)
        ]
