"""Disks that scripts of operating systems write to dumps, and make from them.

What a script writes can be read once, and what it reads cannot be taken back: where a copy of a
disk goes on after it broke off, a script begins anew.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from common.errors import NodeFailure, NotFound, Unreachable
from common.messages import Order
from common.model.backing import StreamBacking
from common.noderpc.copies import BrokenOff, Compression
from common.noderpc.disks import DiskSpec
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.disks.holding import Handover
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.operations.steps.copies import DiskCopy, Side, end_side, fetch_disk, offer_disk
from coordinator.operations.steps.disks import hold_disks
from coordinator.operations.steps.patience import in_passing, patiently
from coordinator.operations.steps.persevering import persevere
from coordinator.operations.steps.scripts import ScriptRun, follow_script
from coordinator.operations.steps.syncing import see_mirrored

BLAME_S = 5.0  # until one that ends takes its word back that it works


class ScriptCopy(Order, kw_only=True):
    """One disk, and the dump that a script makes of it, or makes it from.

    Attributes:
        run: the script for this disk, its parameters left out.
        osparams: those of the instance that anybody may see.
        dump: what is written, or read.
        compression, rate: of what is sent.
    """

    run: ScriptRun
    osparams: dict[str, Any]
    dump: Side
    compression: Compression = Compression.NONE
    rate: int = 0

    @property
    def index(self) -> int:
        assert self.run.order.disk is not None
        return self.run.order.disk

    @property
    def title(self) -> str:
        subject, here, there = self.run.order.subject, self.run.node, self.dump.node
        if self.run.order.script is Script.IMPORT:
            return f"have {subject.os} on {here} import disk {self.index} from {there}"
        return f"have {subject.os} on {here} export disk {self.index} to {there}"

    @property
    def disk(self) -> DiskSpec:
        return self.run.order.subject.disks[self.index]


def copy_by_script(
    cluster: Cluster, copy: ScriptCopy, full: Callable[[ScriptCopy], ScriptOrder]
) -> Iterator[Step]:
    """Run a script to its end while its stream is copied; undone, both are ended.

    They are forgotten in a step of its own, as after other scripts: whoever takes over meanwhile
    shall find that they have ended, and not begin anew.

    Args:
        cluster: as the job sees it.
        copy: what is done.
        full: gives the order with what is confidential.
    """
    conversation = _Conversation(cluster, copy, full)

    async def do() -> None:
        await persevere(cluster, conversation.attempt)
        if copy.run.order.script is Script.IMPORT and copy.run.has_second_copy:
            await see_mirrored(cluster, copy.run.node, copy.disk)

    yield act(copy.title, do, undo=conversation.give_up)
    yield act(
        f"let go of disk {copy.index} and its dump",
        lambda: patiently(cluster, conversation.end),
    )


class _Conversation:
    """A script, and the copy that brings what it reads, or takes what it writes."""

    def __init__(
        self, cluster: Cluster, copy: ScriptCopy, full: Callable[[ScriptCopy], ScriptOrder]
    ) -> None:
        self._cluster, self._copy, self._full = cluster, copy, full
        self._run = cluster.task_id(f"{copy.run.order.script}-{copy.index}")
        spec, nothing = copy.disk, Handover()
        stream = Side(
            node=copy.run.node,
            disk=DiskSpec(
                id=spec.id,
                instance=spec.instance,
                size=spec.size,
                backing=StreamBacking(run=self._run),
            ),
            attach=nothing,
            detach=nothing,
        )
        is_import = copy.run.order.script is Script.IMPORT
        self._stream = stream
        self._way = DiskCopy(
            index=copy.index,
            source=copy.dump if is_import else stream,
            target=stream if is_import else copy.dump,
            compression=copy.compression,
            rate=copy.rate,
        )

    async def attempt(self, number: int) -> None:
        cluster, run, way = self._cluster, self._copy.run, self._way
        if number:
            await self.end()
        order = self._full(self._copy)
        await hold_disks(cluster, order.subject.disks, run.attach.do)
        await hold_disks(cluster, (self._copy.dump.disk,), self._copy.dump.attach.do)
        await cluster.call(OperatingSystems, run.node).begin(run=self._run, order=order)
        try:
            await fetch_disk(cluster, way, await offer_disk(cluster, way), number)
        except BrokenOff:
            raise
        except NodeFailure:
            await self._blame_script()
            raise
        await follow_script(cluster, run.node, self._run)

    async def end(self) -> None:
        """Have both nodes have nothing to do with it any more."""
        await self._end_script()
        await end_side(self._cluster, self._copy.index, self._copy.dump)

    async def give_up(self) -> None:
        """End it; nobody waits for a node that has nothing but a dump of it."""
        dump = self._copy.dump
        ending = partial(end_side, self._cluster, self._copy.index, dump)
        left = f"A part of disk {self._copy.index}"
        await in_passing(self._cluster, dump.node, ending, left=left)
        await self._end_script()

    async def _end_script(self) -> None:
        cluster, run = self._cluster, self._copy.run
        await end_side(cluster, self._copy.index, self._stream)
        await cluster.call(OperatingSystems, run.node).ensure_ended(run=self._run)
        await hold_disks(cluster, run.order.subject.disks, run.detach.do)

    async def _blame_script(self) -> None:
        """Raise what a script has failed with, if it has: it knows best why its copy has."""
        cluster, node, offset = self._cluster, self._copy.run.node, 0
        limit = cluster.steady() + BLAME_S
        while cluster.steady() < limit:
            try:
                report = await cluster.call(OperatingSystems, node).look(
                    run=self._run, offset=offset
                )
            except (NotFound, Unreachable):
                return
            if report.has_ended:
                await follow_script(cluster, node, self._run)
                return
            offset = report.offset
            if not report.text:
                await cluster.sleep(BLAME_S / 10)
