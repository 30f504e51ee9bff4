"""What a node tells of itself, and the last thing it can be asked for."""

from abc import abstractmethod

from common.messages import Report
from common.model.pool import Pool
from common.names import Few, InstanceId, Load, MiB, NodeName, Seconds, Sentence, Word
from common.rpc.declare import NodeService, rpc


class Spindles(Report):
    """The physical volumes of a volume group that new volumes can take space of.

    Attributes:
        total: how many there are.
        free: on how many of them there is nothing.
        smallest, largest: of their sizes.
    """

    total: Few
    free: Few
    smallest: MiB
    largest: MiB


class StorageReport(Report):
    """Space in one pool of disks.

    ``spindles`` are told of volume groups alone, and by nodes that are not too old to say.
    """

    pool: Pool
    total: MiB
    free: MiB
    usable: bool  # exists and can be written
    problem: Sentence = ""
    spindles: Spindles | None = None


class NodeFacts(Report):
    """A node as it is now.

    ``memory_dom0`` is what the node itself uses: neither free nor given to guests.
    ``clock`` is its idea of the time, in seconds since 1970. ``guests`` are those that
    ``memory_free`` leaves out already; None if the node is too old to say.
    """

    name: NodeName
    version: Word
    boot_id: Word
    clock: Seconds
    memory_total: MiB
    memory_free: MiB
    memory_dom0: MiB
    cpus: Few
    cpu_sockets: Few
    cpu_nodes: Few
    load: Load = 0.0  # runnable processes, one-minute average
    hypervisors: dict[Word, Word] = {}  # name -> version, or "" where it does not work
    storage: tuple[StorageReport, ...] = ()
    memory_locked: bool = False
    guests: dict[InstanceId, MiB] | None = None
    unmirrored: Sentence = ""  # why no disk can be mirrored here, and what to do
    drbd_version: Word = ""  # of the kernel's module
    drbd_helper: Sentence = ""  # the program that it runs, where it is to run none
    unguarded: Sentence = ""  # why guests can send with addresses of others, if they can
    certificate_end: Seconds | None = None  # until when its certificate is good, since 1970


class Facts(NodeService, prefix="facts"):
    """Looks, and the power switch."""

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def facts(self, *, storage: tuple[Pool, ...] = ()) -> NodeFacts:
        """Return what this node is and has.

        Args:
            storage: pools to report on.
        """

    @rpc(timeout=10, safe_to_repeat=False)
    @abstractmethod
    async def powercycle(self) -> None:
        """Reboot at once, without writing to disk: it may be dead.

        Answers first; the node is gone half a second later.
        """
