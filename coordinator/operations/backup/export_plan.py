"""What an export is going to do."""

from typing import Any

from common.messages import Order
from common.model.node import NodeRef
from common.noderpc.instances import GuestSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.holding import Handover
from coordinator.operations.instance.remove import RemovePlan
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.steps.copies import DiskCopy
from coordinator.operations.steps.script_copies import ScriptCopy
from coordinator.operations.steps.scripts import ScriptRun
from coordinator.operations.steps.sent_disks import SentDisk


class ExportPlan(Order, kw_only=True):
    node: NodeRef  # where the instance is
    target: NodeRef | None  # where the export goes; None: to another cluster
    guest: GuestSpec
    detach: Handover
    attach: Handover
    was_running: bool
    copies: tuple[DiskCopy, ...]
    description: str
    replaces: bool  # an export of before, which is gone when this one is there
    removal: RemovePlan | None
    wait_s: float
    now: float
    stops: bool = True  # the guest, for the time of the copies, or until there are snapshots
    snapshots: tuple[SnapshotSpec, ...] = ()  # that are copied while the guest goes on
    kept: PlannedInstance | None = None  # the instance, with what these take
    sent: tuple[SentDisk, ...] = ()  # to another cluster
    scripted: tuple[ScriptCopy, ...] = ()  # instead of copies, by a script of its system
    sent_by: ScriptRun | None = None  # a script of its system, to another cluster
    osparams: dict[str, Any] = {}  # for that, those that anybody may see
