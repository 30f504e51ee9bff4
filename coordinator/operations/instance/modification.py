"""An instance as it was and as it is going to be, and what has to be done for that."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from common.messages import Order
from common.model.instance import Instance
from common.model.nic import Nic
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.convert import Conversion, delete_old, make_and_fill
from coordinator.operations.instance.disk_changes import has_other_modes
from coordinator.operations.instance.disk_steps import DiskPlan, delete_removed, make_and_plug
from coordinator.operations.instance.modified import (
    disks_in_words,
    layer_in_words,
    nics_in_words,
)
from coordinator.operations.instance.nic_steps import NicPlan, plug_nics
from coordinator.operations.instance.reserved_disks import ReservedDisks, promise_of_change
from coordinator.operations.instance.runtime_memory import MemoryPlan, set_memory
from coordinator.operations.placement.growth import promise_of_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change, differing

_OF_NO_GUEST = frozenset({"os", "osparams"})  # the guest is not told of them


class Modification(Order, kw_only=True):
    before: Instance
    after: Instance
    conversion: Conversion | None = None  # of its disks
    disks: DiskPlan | None = None
    nics: NicPlan | None = None  # for the guest that runs
    memory: MemoryPlan | None = None  # of the guest that runs
    reserved: ReservedDisks | None = None  # of one that is only reserved: no node does anything
    nics_before: tuple[Nic, ...]
    nics_after: tuple[Nic, ...]
    is_confidential: bool = False  # something changes that is in no plan
    now: float

    @property
    def differs(self) -> bool:
        """Tell whether the instance's own record or a nic is going to be another one."""
        return bool(differing(self.before, self.after)) or self.nics_after != self.nics_before

    @property
    def promises(self) -> tuple[Promise, ...]:
        """Return what the instance takes that it has not taken before."""
        if self.reserved:
            return (promise_of_change(self.after, self.reserved, self.nics_after),)
        made: list[Promise] = []
        home, port = self.after.primary_node, self.after.network_port
        if self.nics_after != self.nics_before or port != self.before.network_port:
            made.append(Promise(self.after.uuid, home, nics=self.nics_after, port=port))
        if self.disks and self.disks.changes.made:
            made.append(promise_of_space(PlannedInstance(self.after, self.disks.changes.disks)))
        elif self.conversion is not None:
            made.append(promise_of_space(PlannedInstance(self.after, self.conversion.after)))
        return tuple(made)

    @property
    def waits_for_start(self) -> bool:
        """Tell whether a guest that runs has something of this at its next start only."""
        later = differing(self.before, self.after).keys() - _OF_NO_GUEST
        if self.disks and self.disks.guest:
            later -= {"disks"}
        if self.disks and has_other_modes(self.disks.changes):
            return True
        if self.nics:
            return bool(later - {"nics"})
        return bool(later) or self.nics_after != self.nics_before

    def in_words(self) -> list[list[Any]]:
        """Return what changes, as pairs of a name and a value, in Ganeti's words."""
        return [
            *layer_in_words("be", self.before.beparams, self.after.beparams),
            *layer_in_words("hv", self.before.hvparams, self.after.hvparams),
            *layer_in_words("os", self.before.osparams, self.after.osparams),
            *([["os", self.after.os]] if self.after.os != self.before.os else []),
            *([["disk_template", self.after.disk_template]]
              if self.after.disk_template != self.before.disk_template else []),
            *([["runtime_memory", self.memory.memory]] if self.memory else []),
            *nics_in_words(self.nics_before, self.nics_after),
            *(disks_in_words(self.disks.changes) if self.disks else []),
            *(self.reserved.in_words() if self.reserved else []),
            *([["admin_state", self.after.admin_state]]
              if self.after.admin_state != self.before.admin_state else []),
        ]  # fmt: skip


def modify(cluster: Cluster, plan: Modification) -> Iterator[Step]:
    """Have an instance be as it is going to be."""
    title, conversion = f"record the change of {plan.before.name}", plan.conversion
    before, after = (plan.before, *plan.nics_before), (plan.after, *plan.nics_after)
    if plan.memory:
        yield set_memory(cluster, plan.memory)
    if plan.nics:
        yield plug_nics(cluster, plan.nics)
    if reserved := plan.reserved:
        yield change(title, (*before, *reserved.before), (*after, *reserved.after), plan.now)
        return
    if disks := plan.disks:
        yield from make_and_plug(cluster, disks)
        before, after = (*before, *disks.changes.before), (*after, *disks.changes.after)
        recorded = change(title, before, after, plan.now)
        removes = bool(disks.changes.removed)
        yield dataclasses.replace(recorded, point_of_no_return=removes)
        yield from delete_removed(cluster, disks)
        return
    if conversion is None:
        yield change(title, before, after, plan.now)
        return
    yield from make_and_fill(cluster, conversion)
    before, after = (*before, *conversion.before), (*after, *conversion.after)
    yield dataclasses.replace(change(title, before, after, plan.now), point_of_no_return=True)
    yield from delete_old(cluster, conversion)
