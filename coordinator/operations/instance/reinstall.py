"""Install an operating system on an instance anew."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.os_name import read_os_name
from common.model.parameters import edited
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    ForceVariant,
    InstanceArgument,
    SecretOsParameters,
)
from coordinator.operations.instance.on_disks import ScriptPlan, plan_script
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import ASK, Shorthand, Syntax, option
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import turn
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.scripts import (
    check_not_blacklisted,
    complete,
    put_script_away,
    run_script,
)
from coordinator.state.config import Config


class ReinstallPlan(Order, kw_only=True):
    before: Instance
    after: Instance
    script: ScriptPlan
    osparams: dict[str, Any]  # those that anybody may see
    now: float


@operation("OP_INSTANCE_REINSTALL")
class ReinstallInstance(Operation[None, ReinstallPlan], kw_only=True):
    """Install an operating system on an instance that is stopped; what is on its disks is lost.

    Parameters that are given count for this time only.
    """

    instance_name: InstanceArgument
    os_type: Annotated[
        str | None,
        option(
            "-o",
            "--os-type",
            metavar="OS[+VARIANT]",
            help="another operating system than it has",
            shorthands=(Shorthand(("--select-os",), "choose one from a list", value=ASK),),
        ),
    ] = None
    force_variant: ForceVariant = False
    osparams: Annotated[
        dict[str, Any],
        option("-O", "--os-parameters", help="NAME=VALUE,…", syntax=Syntax.KEYVAL),
    ] = {}
    osparams_private: Annotated[
        dict[str, Any] | str,
        option(
            "--os-parameters-private",
            help="NAME=VALUE,…; shown to nobody",
            syntax=Syntax.KEYVAL,
            secret=True,
        ),
    ] = {}
    osparams_secret: SecretOsParameters = {}

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> ReinstallPlan:
        config = cluster.config
        before = config.instance(self.instance_name)
        after = self._changed(before)
        check_not_blacklisted(config, after.os)
        script = await plan_script(
            cluster, Script.CREATE, before, after, may_be_unknown=self.force_variant
        )
        plan = ReinstallPlan(
            before=before,
            after=after,
            script=script,
            osparams=edited(after.osparams, self.osparams),
            now=cluster.now(),
        )
        await cluster.call(OperatingSystems, script.run.node).check(
            order=self._script(cluster, plan)
        )
        return plan

    def recipe(self, cluster: Cluster, plan: ReinstallPlan) -> Iterator[Step]:
        name = plan.before.name
        script = plan.script
        yield from fall_behind(script.guest, script.lost, plan.now)
        title = f"install {plan.after.os} on {name}"
        install = run_script(cluster, script.run, title, lambda: self._script(cluster, plan))
        # What was there is gone; what is there now is recorded with the news of it.
        recorded = turn((plan.before,), (plan.after,), plan.now)
        yield dataclasses.replace(install, edit=recorded, point_of_no_return=True)
        yield put_script_away(cluster, script.run)

    def _script(self, cluster: Cluster, plan: ReinstallPlan) -> ScriptOrder:
        given = (self.osparams_private, self.osparams_secret)
        return complete(cluster, plan.script.run.order, plan.osparams, *given)

    def _changed(self, present: Instance) -> Instance:
        """Return the instance with its operating system; of another one it has no parameters."""
        os = self.os_type or present.os
        if not os:
            raise InvalidRequest(
                f"Instance {present.name} has no operating system; say which, with -o."
            )
        is_same = bool(present.os) and _definition(os) == _definition(present.os)
        return replace(present, os=os, osparams=present.osparams if is_same else {})


def _definition(os: str) -> str:
    return read_os_name(os).definition
