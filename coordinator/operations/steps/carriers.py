"""What goes from cluster to cluster of each disk: all of it, or what its system's scripts make.

Scripts have their say at the end: as long as one of the two has not ended well, nothing has come.
What broke off in the middle of a script is begun anew from its beginning, on both sides.
"""

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from common.errors import NotFound, Unreachable
from common.model.backing import StreamBacking
from common.noderpc.disks import DiskSpec
from common.noderpc.operating_systems import OperatingSystems, ScriptOrder
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import Side
from coordinator.operations.steps.scripts import MOST_LINES, ScriptRun


class WholeDisks:
    """Disks as they are; what has come of them is not sent again."""

    async def ready(self, index: int, side: Side) -> DiskSpec:  # noqa: ARG002 -- see ``Scripts``
        """Return what is read or written instead of a disk, by its number."""
        return side.disk

    def broke_off(self, index: int) -> None:
        """Take note of it."""

    async def tell(self, index: int) -> None:
        """Pass on what was said meanwhile."""

    async def end(self, index: int) -> None:
        """Have nothing to do with it any more."""


class Scripts(WholeDisks):
    """Scripts that write, or read, what is sent: one for each disk."""

    def __init__(
        self, cluster: Cluster, run: ScriptRun, full: Callable[[ScriptOrder], ScriptOrder]
    ) -> None:
        """Run scripts as ``run`` says; ``full`` gives an order with its parameters."""
        self._cluster, self._run, self._full = cluster, run, full
        self._spent: set[int] = set()

    async def ready(self, index: int, side: Side) -> DiskSpec:
        """Return the stream of a script that is there, or has ended; it is begun if it is not.

        Who resumes a job may not know what is confidential any more, and need not: only a script
        that is begun is told.
        """
        id, systems = self._id(index), self._cluster.call(OperatingSystems, self._run.node)
        if index in self._spent:
            await systems.ensure_ended(run=id)
        try:
            await systems.look(run=id, offset=0)
        except NotFound:
            # It is there already, whatever its definition says of variants now.
            order = replace(self._run.order, disk=index, may_be_unknown=True)
            await systems.begin(run=id, order=self._full(order))
        self._spent.discard(index)
        disk = side.disk
        backing = StreamBacking(run=id)
        return DiskSpec(id=disk.id, instance=disk.instance, size=disk.size, backing=backing)

    def broke_off(self, index: int) -> None:
        self._spent.add(index)

    async def tell(self, index: int) -> None:
        cluster, id, offset, lines = self._cluster, self._id(index), 0, 0
        systems = cluster.call(OperatingSystems, self._run.node)
        with suppress(NotFound, Unreachable):  # it is kept on its node
            while (report := await systems.look(run=id, offset=offset)).text:
                for line in report.text.splitlines()[: MOST_LINES - lines]:
                    cluster.log(line)
                    lines += 1
                offset = report.offset
                if lines == MOST_LINES:
                    cluster.log(f"All that it said is in {report.log} on {self._run.node}.")
                    return

    async def end(self, index: int) -> None:
        systems = self._cluster.call(OperatingSystems, self._run.node)
        await systems.ensure_ended(run=self._id(index))

    def _id(self, index: int) -> str:
        return self._cluster.task_id(f"{self._run.order.script}-{index}")
