"""Instances: whether each runs where it should, and nothing runs that should not."""

from collections.abc import Iterator

from common.model.instance import AdminState
from common.noderpc.instances import GuestState
from coordinator.checks.finding import Finding, Seen

_ALIVE = (GuestState.RUNNING, GuestState.PAUSED)


def check_states(seen: Seen) -> Iterator[Finding]:
    """Name instances that are up and should not be, or the other way round."""
    running: dict[str, list[str]] = {}
    for node, report in seen.answered():
        for guest in report.guests:
            if guest.state in _ALIVE:
                running.setdefault(guest.id, []).append(node.uuid)
    answered = {node.uuid for node, _ in seen.answered()}
    for instance in seen.config.sorted_instances():
        primary = seen.config.nodes.get(instance.primary_node)
        if primary is None:
            continue  # check_references tells
        where = running.get(instance.uuid, [])
        if len(where) > 1:
            names = ", ".join(seen.config.nodes[uuid].name for uuid in where)
            message = f"runs on several nodes at once: {names}; its disks are in danger"
            yield Finding("EINSTANCEWRONGNODE", "instance", instance.name, message)
        elif where and where[0] != primary.uuid:
            message = f"runs on {seen.config.nodes[where[0]].name} instead of {primary.name}"
            yield Finding("EINSTANCEWRONGNODE", "instance", instance.name, message)
        elif primary.offline and seen.concerns(primary.uuid):
            message = f"its node {primary.name} is marked offline"
            yield Finding("EINSTANCEBADNODE", "instance", instance.name, message)
        elif primary.uuid in answered and not where and instance.admin_state is AdminState.UP:
            message = f"should run on {primary.name} and does not"
            yield Finding("EINSTANCEDOWN", "instance", instance.name, message)
        elif where and instance.admin_state is not AdminState.UP:
            message = f"runs on {primary.name} although it is marked {instance.admin_state}"
            yield Finding("EINSTANCEDOWN", "instance", instance.name, message)


def check_strangers(seen: Seen) -> Iterator[Finding]:
    """Name guests, shells and taps that belong to no instance of that node."""
    for node, report in seen.answered():
        for guest in report.guests:
            instance = seen.config.instances.get(guest.id)
            if instance is None:
                message = f"the guest {guest.name} ({guest.state}) is not in the configuration"
                yield Finding("ENODEORPHANINSTANCE", "node", node.name, message)
            elif guest.state not in _ALIVE and instance.primary_node != node.uuid:
                message = f"a remnant of {guest.name} is left here ({guest.state})"
                yield Finding("ENODEORPHANINSTANCE", "node", node.name, message)
        present = {guest.id for guest in report.guests}
        for tap in report.taps:
            if tap.instance not in present:
                message = f"the tap {tap.name} is left from a guest that is gone"
                yield Finding("ENODENET", "node", node.name, message)
