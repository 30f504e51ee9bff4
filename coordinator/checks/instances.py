"""Instances: whether each runs where it should, and nothing runs that should not."""

from collections.abc import Iterator

from common.model.instance import AdminState
from common.model.node import Node
from common.names import InstanceId, InstanceName, NodeId
from common.noderpc.instances import GuestReport, GuestState
from coordinator.checks.finding import Finding, Seen, Severity

_REMNANTS = {
    GuestState.STOPPED: "stopped: no process, only its directory and taps",
    GuestState.INCOMING: "incoming: a process that waits to be told to run",
    GuestState.MIGRATED: "migrated: what its memory has left",
}


def check_states(seen: Seen) -> Iterator[Finding]:
    """Name instances that are up and should not be, or the other way round."""
    running = _hosts(seen, (GuestState.RUNNING, GuestState.PAUSED))
    unknown = _hosts(seen, (GuestState.UNKNOWN,))
    answered = {node.uuid for node, _ in seen.answered()}
    turned_off = _turned_off(seen)
    for instance in seen.config.made_instances:
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
        elif instance.uuid in unknown:
            continue  # check_silence tells
        elif instance.uuid in turned_off:
            continue  # its user wanted it so, which the watcher notes
        elif primary.uuid in answered and not where and instance.admin_state is AdminState.UP:
            message = f"should run on {primary.name} and does not"
            yield Finding("EINSTANCEDOWN", "instance", instance.name, message)
        elif where and instance.admin_state is not AdminState.UP:
            message = f"runs on {primary.name} although it is marked {instance.admin_state}"
            yield Finding("EINSTANCEDOWN", "instance", instance.name, message)


def _turned_off(seen: Seen) -> set[InstanceId]:
    """Return what its user has turned off, and may."""
    if not seen.config.cluster.enabled_user_shutdown:
        return set()
    return {g.id for _, report in seen.answered() for g in report.guests if g.user_down}


def check_silence(seen: Seen) -> Iterator[Finding]:
    """Name guests whose process does not answer, so that nobody knows what they do."""
    for node, guest, name in _guests(seen):
        if guest.silent_s:
            message = (
                f"its process on {node.name} has not answered for {guest.silent_s:.0f} s; "
                f"its state is {guest.state}"
            )
            yield Finding("EINSTANCEDOWN", "instance", name, message)


def check_space(seen: Seen) -> Iterator[Finding]:
    """Name guests that stand still because what they wrote found no room."""
    for node, guest, name in _guests(seen):
        if guest.lacks_space:
            message = (
                f"stands still on {node.name}, as what it wrote found no room; make some where "
                f"its disks are, then “gnt-instance startup {name}” has it go on"
            )
            yield Finding("EINSTANCEDOWN", "instance", name, message)


def check_tpms(seen: Seen) -> Iterator[Finding]:
    """Name guests that go on without the TPM that they were started with."""
    for node, guest, name in _guests(seen):
        if guest.lost_tpm:
            message = (
                f"its TPM on {node.name} has ended, and what it has sealed is out of its "
                f"reach; “gnt-instance reboot {name}” gives it back"
            )
            yield Finding("EINSTANCEDOWN", "instance", name, message)


def _guests(seen: Seen) -> Iterator[tuple[Node, GuestReport, InstanceName]]:
    """Yield the guests of all nodes, each with its name by now: it may have been renamed."""
    for node, report in seen.answered():
        for guest in report.guests:
            yield node, guest, seen.config.instances.get(guest.id, guest).name


def check_whereabouts(seen: Seen) -> Iterator[Finding]:
    """Name instances of which a migration has left open where they are."""
    for instance in seen.config.made_instances:
        if instance.maybe_on:
            nodes = seen.config.nodes
            names = " or ".join(
                nodes[uuid].name if uuid in nodes else uuid for uuid in instance.maybe_on
            )
            message = (
                f"may be on {names}; unless a job is moving it just now, “gnt-instance migrate "
                f"--cleanup {instance.name}” settles it"
            )
            yield Finding(
                "EINSTANCEWRONGNODE", "instance", instance.name, message, Severity.WARNING
            )


def check_strangers(seen: Seen) -> Iterator[Finding]:
    """Name guests, shells and taps that belong to no instance of that node."""
    for node, report in seen.answered():
        for guest in report.guests:
            instance = seen.config.instances.get(guest.id)
            if instance is None:
                message = f"the guest {guest.name} ({guest.state}) is not in the configuration"
                yield Finding("ENODEORPHANINSTANCE", "node", node.name, message)
            elif not guest.state.may_run and instance.primary_node != node.uuid:
                message = (
                    f"a remnant of {instance.name} is left here ({_REMNANTS[guest.state]}); "
                    f"“gnt-instance migrate --cleanup {instance.name}” clears it away"
                )
                yield Finding("ENODEORPHANINSTANCE", "node", node.name, message)
        present = {guest.id for guest in report.guests}
        for tap in report.taps:
            if tap.instance not in present:
                message = f"the tap {tap.name} is left from a guest that is gone"
                yield Finding("ENODENET", "node", node.name, message)


def _hosts(seen: Seen, states: tuple[GuestState, ...]) -> dict[InstanceId, list[NodeId]]:
    """Return the nodes with a guest in one of these states for each instance."""
    hosts: dict[InstanceId, list[NodeId]] = {}
    for node, report in seen.answered():
        for guest in report.guests:
            if guest.state in states:
                hosts.setdefault(guest.id, []).append(node.uuid)
    return hosts
