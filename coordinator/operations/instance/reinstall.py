"""Install an operating system on an instance anew."""

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.node import NodeRef
from common.model.os_name import read_os_name
from common.model.parameters import edited
from common.noderpc.instances import GuestSpec
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    ForceVariant,
    InstanceArgument,
    SecretOsParameters,
)
from coordinator.operations.instance.second_copy import check_good_copy, find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import ASK, Shorthand, Syntax, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import turn
from coordinator.operations.steps.checks import (
    check_has_disks,
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.scripts import (
    ScriptRun,
    check_not_blacklisted,
    complete,
    put_script_away,
    run_script,
    subject_of,
)
from coordinator.state.config import Config


class ReinstallPlan(Order, kw_only=True):
    before: Instance
    after: Instance
    install: ScriptRun
    osparams: dict[str, Any]  # those that anybody may see
    guest: GuestSpec
    lost: tuple[NodeRef, ...]  # whose copies fall behind
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
        check_has_disks(before)
        check_settled(cluster, before)
        node = config.nodes[before.primary_node]
        check_online(node)
        if may_run(await find_guest(cluster, before, node)):
            raise Conflict(
                f"Instance {before.name} runs; stop it first, with “gnt-instance shutdown "
                f"{before.name}”.",
                instance=before.name,
            )
        await check_not_elsewhere(cluster, before, node)
        guest = present_guest(config, before)
        cast = await find_cast(cluster, before, node, guest)
        check_good_copy(cluster, before, cast)
        kind, nodes = kind_of(before.disk_template), config.nodes_of(before)
        subject = subject_of(
            config,
            after,
            config.disks_of(before),
            config.nics_of(before),
            guest,
            tuple(config.nodes[uuid].ref for uuid in nodes),
        )
        stays = before.has_active_disks  # as the operator has had them attached
        install = ScriptRun(
            node=node.ref,
            order=ScriptOrder(
                script=Script.CREATE,
                subject=subject,
                is_reinstallation=True,
                may_be_unknown=self.force_variant,
            ),
            attach=kind.before_start(cast.nodes),
            detach=Handover() if stays else kind.after_stop(cast.nodes),
            has_second_copy=not cast.lost,
        )
        plan = ReinstallPlan(
            before=before,
            after=after,
            install=install,
            osparams=edited(after.osparams, self.osparams),
            guest=guest,
            lost=cast.lost,
            now=cluster.now(),
        )
        await cluster.call(OperatingSystems, node).check(order=self._script(cluster, plan))
        return plan

    def recipe(self, cluster: Cluster, plan: ReinstallPlan) -> Iterator[Step]:
        name = plan.before.name
        yield from fall_behind(plan.guest, plan.lost, plan.now)
        title = f"install {plan.after.os} on {name}"
        install = run_script(cluster, plan.install, title, lambda: self._script(cluster, plan))
        # What was there is gone; what is there now is recorded with the news of it.
        recorded = turn((plan.before,), (plan.after,), plan.now)
        yield dataclasses.replace(install, edit=recorded, point_of_no_return=True)
        yield put_script_away(cluster, plan.install)

    def _script(self, cluster: Cluster, plan: ReinstallPlan) -> ScriptOrder:
        given = (self.osparams_private, self.osparams_secret)
        return complete(cluster, plan.install.order, plan.osparams, *given)

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
