"""Operating systems' definitions on a node, and their scripts, which work on disks of instances.

A script is a process of its own: it goes on while noded is restarted, and is known by the id that
the caller chose for its run. One that imports or exports a disk waits until a copy has been begun
with its stream in the place of a disk (``StreamBacking``), once.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from common.messages import Order, Report
from common.names import (
    Count,
    DebugLevel,
    Few,
    InstanceId,
    InstanceName,
    NodeName,
    Path,
    Sentence,
    Word,
)
from common.noderpc.disks import DiskSpec
from common.noderpc.network import NicSpec
from common.rpc.declare import NodeService, rpc

RunId = Annotated[str, Meta(pattern=r"^[0-9A-Za-z-]{1,128}$")]  # becomes a file name
Output = Annotated[str, Meta(max_length=64 << 10)]


class Script(StrEnum):
    """What a definition may have."""

    CREATE = "create"
    IMPORT = "import"
    EXPORT = "export"
    RENAME = "rename"
    VERIFY = "verify"


WITH_STREAM = frozenset({Script.IMPORT, Script.EXPORT})  # run once for each disk


class DefinitionReport(Report):
    """A definition; with a ``problem`` it cannot be used.

    Attributes:
        name: without a variant.
        path: its directory; empty where it is a part of Gantry.
        problem: why it cannot be used.
        api_versions: that it declares, known here or not.
        variants: that it declares, the usual one first.
        parameters: names and descriptions.
        hypervisors: those it is for; none: any.
        scripts: that it has.
        is_trusted: what it brings runs as root of the node, and not in a sandbox.
        shadowed: directories of the same name that come later on the search path.
        tells_endings: copies of what its scripts write or read wait for how these end.
    """

    name: Word
    path: Path = ""
    problem: Sentence = ""
    api_versions: tuple[Few, ...] = ()
    variants: tuple[Word, ...] = ()
    parameters: tuple[tuple[Word, Sentence], ...] = ()
    hypervisors: tuple[Word, ...] = ()
    scripts: tuple[Script, ...] = ()
    is_trusted: bool = True
    shadowed: tuple[Path, ...] = ()
    tells_endings: bool = False


class Subject(Order, kw_only=True, omit_defaults=True):
    """An instance as scripts are told of it; every parameter is filled."""

    id: InstanceId
    name: InstanceName
    os: str
    primary_node: NodeName
    secondary_nodes: tuple[NodeName, ...] = ()
    ctime: float
    mtime: float
    hypervisor: str
    disks: tuple[DiskSpec, ...] = ()
    disk_names: tuple[str, ...] = ()  # of those disks, in their order
    nics: tuple[NicSpec, ...] = ()
    nic_names: tuple[str, ...] = ()
    nic_networks: tuple[dict[str, str], ...] = ()  # NETWORK_…; (): no nic is in a network
    hvparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}


class ScriptOrder(Order, kw_only=True, omit_defaults=True):
    """What is to be run.

    Attributes:
        script: of the definition that ``subject`` names.
        subject: the instance.
        parameters: of the operating system.
        confidential: names of those whose values appear in no output and no log.
        is_reinstallation: there was something on the disks before.
        old_name: of the instance, for a renaming.
        disk: the number of the disk that is imported or exported.
        may_be_unknown: the variant need not be one that the definition declares.
        debug_level: how much it is asked to say of what it does; 0: what is usual.
    """

    script: Script
    subject: Subject
    parameters: dict[str, str] = {}
    confidential: tuple[str, ...] = ()
    is_reinstallation: bool = False
    old_name: str = ""
    disk: Few | None = None
    may_be_unknown: bool = False
    debug_level: DebugLevel = 0


class ScriptReport(Report):
    """How far a script is.

    Attributes:
        text: of its output, from where it was asked for, in whole lines.
        offset: from where to ask next.
        has_ended: and all of its output has been told.
        problem: why it has failed.
        log: where on the node all of it is kept.
    """

    text: Output = ""
    offset: Count = 0
    has_ended: bool = False
    problem: Sentence = ""
    log: Path = ""


class OperatingSystems(NodeService, prefix="os"):
    """Definitions and scripts of one node."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def definitions(self) -> tuple[DefinitionReport, ...]:
        """Return all that are there, by name, whole or not."""

    @rpc(timeout=90, safe_to_repeat=True)
    @abstractmethod
    async def check(self, *, order: ScriptOrder) -> None:
        """Refuse what could not be run here; a definition's own check of its parameters is made.

        Raises:
            InvalidRequest: a name, variant or parameter that the definition does not have.
            NodeFailure: there is no such definition, it cannot be used, or it lacks the script.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def begin(self, *, run: RunId, order: ScriptOrder) -> None:
        """Start a script, unless it was started for this run before; its disks are attached.

        As long as it goes on, no guest can be started on its disks, or the one it is run for.
        Earlier runs for the instance that have ended are forgotten.

        Raises:
            InvalidRequest, NodeFailure: as ``check``; or a disk is not attached, or in use.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def look(self, *, run: RunId, offset: Count) -> ScriptReport:
        """Tell how far a script is, and what it has said from ``offset`` on.

        Raises:
            NotFound: no script was started for this run, or the node has lost its power since.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_ended(self, *, run: RunId) -> None:
        """End a script, with all that it has started and mounted, and forget the run.

        It is asked to end, and killed if it has not soon. Its log is kept.
        """
