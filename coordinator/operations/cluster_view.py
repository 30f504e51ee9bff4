"""What an operation may touch."""

from collections.abc import Awaitable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from common.errors import GntError
from common.model.node import Node, NodeRef
from common.names import NodeId, NodeName, TaskId
from common.noderpc.identity import Join
from common.rpc.declare import NodeService
from coordinator.locks.names import Owner
from coordinator.operations.placement.promises import Promise
from coordinator.state.config import Config
from coordinator.state.state import State

if TYPE_CHECKING:  # commands read operations; asyncio would double the time that takes
    from coordinator.nodes.reports import Live
    from coordinator.operations.placement.shared import Placing

K = TypeVar("K")
S = TypeVar("S", bound=NodeService)
T = TypeVar("T")


class Authority(Protocol):
    """Issues certificates; the cluster's certificate authority."""

    def certificate(
        self, csr: str, node: Node, *, also: NodeName | None = None, by_next: bool = False
    ) -> str:
        """Return a PEM certificate for ``node``; good for another name as well, if one is given.

        ``by_next`` has the authority sign it that is to take this one's place.
        """

    @property
    def pem(self) -> str:
        """The authority's own certificate."""

    @property
    def trusted(self) -> str:
        """The same, and while it is being replaced that of the next one."""


class Meeting(Protocol):
    """A socket at which one program can visit a job."""

    @property
    def path(self) -> str: ...

    async def arrival(self) -> None:
        """Return when somebody has connected; nobody else can from then on."""

    async def departure(self) -> None:
        """Return when the visitor has hung up, or has said something."""


class Cluster(Protocol):
    """The cluster as a running job sees it; in simulations, one in memory.

    Calls to nodes carry the job's number and the epoch.
    """

    @property
    def state(self) -> State:
        """The newest durable state."""

    @property
    def config(self) -> Config: ...

    @property
    def troubles(self) -> Mapping[NodeName, GntError]:
        """Why candidates, by name, cannot take the newest state."""

    @property
    def authority(self) -> Authority: ...

    @property
    def owner(self) -> Owner:
        """Under which name this operation makes promises."""

    @property
    def debug_level(self) -> int:
        """How much scripts of this operation are asked to say of what they do."""

    @property
    def placing(self) -> "Placing":
        """What it shares with others that look for room."""

    def promise(self, *promises: Promise) -> None:
        """Have others count with what this operation is going to take.

        Replaces what it promised before. Once it is prepared, its plan says what it takes.
        """

    def now(self) -> float:
        """Seconds since 1970, UTC."""

    def steady(self) -> float:
        """Seconds on a clock that nobody puts forward or back, for measuring patience."""

    def new_uuid(self) -> str: ...

    def log(self, message: str, *, detail: bool = False) -> None:
        """Tell whoever watches the job; a ``detail`` only those who want to know it all."""

    def announce(self, kind: str, value: dict[str, Any] | list[Any]) -> None:
        """Tell programs that follow the job what they wait for; ``kind`` is Ganeti's word."""

    def task_id(self, purpose: str) -> TaskId:
        """Name a task on a node: the same for the same job and purpose, so it is begun once."""

    async def run_task(self, node: NodeId | NodeRef, task: TaskId) -> None:
        """Watch a task to its end, passing its messages on.

        Raises:
            GntError: as it failed; Cancelled when the operator cancelled the job.
        """

    def call(self, kind: type[S], node: NodeId | NodeRef | Node) -> S:
        """Return a service of one node: ``cluster.call(Instances, node).guests()``.

        Where the node is, and whether it is asked at all, is as the configuration says by then. A
        node that is given as a whole need not be in it, yet or any more.

        Raises:
            NotFound: it is not in the configuration.
        """

    def at(self, kind: type[S], node: Node) -> S:
        """Return a service of a node at the very address that is given, whatever is recorded."""

    def stranger(self, node: Node, fingerprint: bytes) -> Join:
        """Reach a node of no cluster, known by the SHA-256 of its certificate."""

    async def is_alive(self, addresses: Collection[tuple[str, int]]) -> bool:
        """Tell whether the machine at these IP addresses and TCP ports runs, if it can be told.

        Whether daemons answer there does not matter.
        """

    async def is_member(self, node: Node) -> bool:
        """Tell whether ``node`` answers as this very node: by its name and its UUID.

        Raises:
            Unreachable: it does not answer at all.
        """

    async def wait_for_member(self, node: Node) -> None:
        """Return when ``node`` answers as this very node.

        Raises:
            Unreachable: it does not do so within some seconds.
        """

    async def sleep(self, seconds: float, *, heed_cancel: bool = True) -> None:
        """Wait; raises Cancelled as soon as the operator cancels the job, if that is heeded."""

    def meeting(self) -> AbstractContextManager[Meeting]:
        """Have a program on this node meet the job; one that follows it is told where."""

    async def happens(self, event: Coroutine[Any, Any, None], *, within_s: float) -> bool:
        """Wait for something; tell whether it happened in time.

        Raises:
            Cancelled: the operator cancels the job.
        """

    async def each(self, calls: Mapping[K, Awaitable[T]]) -> dict[K, T | GntError]:
        """Await all at once; an answer or an error for each."""

    async def facts_of(self, nodes: Iterable[Node], *, space: bool = True) -> "Live":
        """Ask several nodes at once; by UUID. Offline nodes are not asked.

        Without ``space`` they do not say what their pools have free, and answer sooner.

        Jobs that ask at the same time share the answers.
        """
