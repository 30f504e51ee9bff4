"""What a node can be asked to do with guests."""

from abc import abstractmethod
from enum import StrEnum
from typing import Any

from common.messages import Order, Report
from common.model.disk import Mode
from common.names import DiskId, InstanceId, InstanceName, MiB, NicId, TaskId
from common.noderpc.network import NicSpec
from common.rpc.declare import NodeService, rpc


class GuestDisk(Order):
    """A disk as the guest gets it, in the order of its disk list."""

    id: DiskId
    path: str  # a block device or file on the node
    mode: Mode = Mode.READ_WRITE


class GuestSpec(Order):
    """All that is needed to run a guest; parameters are filled."""

    id: InstanceId
    name: InstanceName
    hypervisor: str
    memory: MiB
    vcpus: int
    disks: tuple[GuestDisk, ...] = ()
    nics: tuple[NicSpec, ...] = ()
    parameters: dict[str, Any] = {}  # of the hypervisor, see common.model.parameters


class GuestState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    INCOMING = "incoming"  # waits for, or receives, its memory from another node
    MIGRATED = "migrated"  # its memory is on another node now; this one is a shell
    STOPPED = "stopped"  # ended by itself; its directory is still there


class GuestReport(Report):
    id: InstanceId
    name: InstanceName
    state: GuestState
    memory: MiB
    vcpus: int
    nics: tuple[NicId, ...] = ()
    cpu_seconds: float = 0.0
    accelerator: str = ""  # "kvm" or "tcg"
    display: str = ""  # where its VNC display is, on the node itself: "127.0.0.1:5900", or nowhere


class ConsoleInfo(Report):
    """Where a guest's console is reached; see ``noded``'s ``/console`` stream."""

    kind: str  # "stream", or "none" with the reason in ``message``
    message: str = ""


class Instances(NodeService, prefix="instances"):
    """Guests of one node. A guest is its process; starting and stopping state wishes."""

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_running(self, *, guest: GuestSpec) -> None:
        """Start a guest and its taps; one that runs already is left alone.

        Raises:
            NodeFailure: no hypervisor, no kernel file, no disk, or it died at once; with the
                end of what it said.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_gone(self, *, instance: InstanceId) -> None:
        """Kill the guest if it is there, and remove its taps and its directory."""

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def begin_shutdown(self, *, instance: InstanceId, wait_s: float, task: TaskId) -> None:
        """Begin the task that asks a guest to power off, and kills it after ``wait_s``.

        Done when the guest is gone as after ``ensure_gone``; also when it was not there.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def reset(self, *, instance: InstanceId) -> None:
        """Restart a running guest as with its reset button; the process stays.

        Raises:
            Conflict: it is not running here.
        """

    @rpc(timeout=15, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def guests(self) -> tuple[GuestReport, ...]:
        """Return every guest on this node, by name."""

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def check_startable(self, *, guest: GuestSpec) -> None:
        """Check what can be checked without starting: files, hypervisor, links.

        Disks are not looked at: they may not exist yet.

        Raises:
            NodeFailure: what is missing.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_incoming(self, *, guest: GuestSpec) -> int:
        """Start the shell that will receive a guest; return the TCP port it listens on.

        A shell that waits already is kept. The transfer is encrypted, and only nodes of this
        cluster can connect.

        Raises:
            Conflict: the guest already runs here.
            NodeFailure: as ``ensure_running``.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def begin_migration(
        self, *, instance: InstanceId, host: str, peer: str, port: int, task: TaskId
    ) -> None:
        """Begin the task that sends a running guest's memory to ``host``.

        Args:
            instance: which.
            host: IP address of the target.
            peer: name in the target's certificate.
            port: as told by ``ensure_incoming``.
            task: the new task's id. Done when the guest runs on the target and stands still
                here; failed or cancelled, it runs here as if nothing had been.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_not_migrating(self, *, instance: InstanceId) -> None:
        """Cancel a transfer that still goes on, and have the guest run here.

        Raises:
            Conflict: its memory has left: the guest runs on the target.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def console(self, *, instance: InstanceId) -> ConsoleInfo:
        """Tell how the guest's console can be reached.

        Raises:
            NotFound: the guest is not on this node.
        """
