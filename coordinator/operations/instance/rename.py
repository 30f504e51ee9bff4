"""Give an instance another name."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.instance import Instance
from common.model.node import Node
from common.names import InstanceName, check_name
from common.noderpc.operating_systems import OperatingSystems, Script
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.on_disks import ScriptPlan, plan_script
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change, turn
from coordinator.operations.steps.checks import find_guest, may_run
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.scripts import complete, put_script_away, run_script
from coordinator.state.config import Config


class RenamePlan(Order, kw_only=True):
    before: Instance
    after: Instance
    script: ScriptPlan | None = None
    now: float


@operation("OP_INSTANCE_RENAME")
class RenameInstance(Operation[None, RenamePlan], kw_only=True):
    """Give an instance another name, also while it runs.

    Within it nothing is changed, but by a script of its operating system: where there is one for
    that, it is run on the disks of an instance that is stopped.
    """

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    new_name: Annotated[InstanceName, argument("its name from then on")]

    run_script: Annotated[
        bool,
        option(
            "--no-script",
            help="run no script of its operating system on its disks",
            syntax=Syntax.NO_FLAG,
        ),
    ] = True

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(
            instance=instance.name, new_name=self.new_name, nodes=config.nodes_of(instance)
        )

    async def prepare(self, cluster: Cluster, _: None) -> RenamePlan:
        config = cluster.config
        check_name(self.new_name, "instance")
        before = config.instance(self.instance_name)
        namesake = config.find_instance(self.new_name)
        if namesake and namesake.uuid != before.uuid:
            raise Conflict(f"There is an instance {self.new_name} already.", instance=self.new_name)
        if self.new_name == before.name:  # Ganeti takes that, and runs the script
            cluster.log(f"{before.name} is called that already, and keeps its name.")
        if before.forthcoming:
            after = replace(before, name=self.new_name)
            return RenamePlan(before=before, after=after, now=cluster.now())
        node = config.nodes[before.primary_node]
        # Guests, disks and taps go by UUID. What a node has written down is only said.
        runs = not node.offline and may_run(await find_guest(cluster, before, node))
        if runs:
            cluster.log(
                f"{before.name} runs, and goes on: what {node.name} itself says of it, in its log "
                "and in the process list, has the old name until it is next started."
            )
        after = replace(before, name=self.new_name)
        script = None
        if self.run_script and not runs and await _has_script(cluster, before, node):
            script = await plan_script(cluster, Script.RENAME, before, after, may_be_unknown=True)
        return RenamePlan(before=before, after=after, script=script, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RenamePlan) -> Iterator[Step]:
        title = f"rename {plan.before.name} to {plan.after.name}"
        if (script := plan.script) is None:
            yield change(title, (plan.before,), (plan.after,), plan.now)
            return
        yield from fall_behind(script.guest, script.lost, plan.now)
        within = run_script(
            cluster,
            script.run,
            f"{title}, on its disks, too",
            lambda: complete(cluster, script.run.order, plan.after.osparams),
        )
        recorded = turn((plan.before,), (plan.after,), plan.now)
        yield dataclasses.replace(within, edit=recorded, point_of_no_return=True)
        yield put_script_away(cluster, script.run)

    def result(self, plan: RenamePlan) -> str:
        return plan.after.name


async def _has_script(cluster: Cluster, instance: Instance, node: Node) -> bool:
    """Tell whether the instance's operating system has a script for that on its node."""
    if not instance.os or not instance.disks or node.offline:
        return False
    name = instance.os.partition("+")[0]
    found = await cluster.call(OperatingSystems, node).definitions()
    return any(each.name == name and Script.RENAME in each.scripts for each in found)
