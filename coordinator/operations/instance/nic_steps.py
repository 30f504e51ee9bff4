"""Plugging and unplugging nics of a guest that runs when those of its instance change."""

from collections.abc import Sequence

from common.messages import Order
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import NodeRef
from common.noderpc.instances import GuestReport, GuestSpec, Instances
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.as_it_runs import as_it_runs
from coordinator.operations.instance.at_once import AtOnce, is_told
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.specs import guest_spec
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_answers, check_online
from coordinator.state.config import Config


class NicPlan(Order, kw_only=True):
    """A guest that runs, with the nics that it is to have, and those that it has."""

    node: NodeRef
    guest: GuestSpec
    guest_before: GuestSpec


def plan_nics(
    cluster: Cluster,
    instance: Instance,
    before: Sequence[Nic],
    after: Sequence[Nic],
    found: GuestReport | None,
    at_once: AtOnce,
) -> NicPlan | None:
    """Plan what a guest is told of its nics; None if it is told nothing.

    Args:
        cluster: as the job sees it.
        instance: as it is.
        before: its nics.
        after: those that it is to have.
        found: its guest, if there is one.
        at_once: whether a guest that runs is told.

    Raises:
        Conflict: it would have to be told, and cannot.
    """
    home = cluster.config.nodes[instance.primary_node]
    if at_once is not AtOnce.NO:
        check_settled(cluster, instance)
        check_online(home)
        check_answers(found, instance, home)
    if found is None or not is_told(instance, found, at_once, found.nic_slots, what="nics"):
        return None
    config, has = cluster.config, found.nic_slots or {}
    return NicPlan(
        node=home.ref,
        guest=as_it_runs(_guest(config, instance, after), found),
        guest_before=as_it_runs(
            _guest(config, instance, [nic for nic in before if nic.uuid in has]), found
        ),
    )


def plug_nics(cluster: Cluster, plan: NicPlan) -> Step:
    """Have a guest know its nics; undone, it has those that it had."""
    instances = cluster.call(Instances, plan.node)
    return act(
        f"have {plan.guest.name} know its nics",
        lambda: instances.ensure_nics(guest=plan.guest),
        undo=lambda: instances.ensure_nics(guest=plan.guest_before),
    )


def _guest(config: Config, instance: Instance, nics: Sequence[Nic]) -> GuestSpec:
    return guest_spec(config, instance, config.disks_of(instance), nics)
