"""What users may do beyond reading everything or changing everything."""

from collections.abc import Mapping
from typing import Any

from common.errors import NotFound
from common.rest_users import OPERATOR, READ, WRITE, User
from coordinator.rapi.call import Call
from coordinator.rapi.copy import Copy
from coordinator.rapi.fields import INSTANCE
from coordinator.rapi.routes import JOB_CHANGES, Route
from coordinator.rapi.users import Access

# What runs is their business, and what it is made of is not.
OPERATORS = frozenset({
    "OP_BACKUP_EXPORT", "OP_INSTANCE_ACTIVATE_DISKS", "OP_INSTANCE_CONSOLE",
    "OP_INSTANCE_DEACTIVATE_DISKS", "OP_INSTANCE_FAILOVER", "OP_INSTANCE_MIGRATE",
    "OP_INSTANCE_QUERY_DATA", "OP_INSTANCE_REBOOT", "OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_STARTUP",
    "OP_NODE_EVACUATE", "OP_NODE_MIGRATE", "OP_NODE_QUERY_STORAGE",
})  # fmt: skip
# What of these would take an instance away, or what was written to it: the only values to be given.
HARMLESS: Mapping[str, Mapping[str, Any]] = {
    "OP_BACKUP_EXPORT": {"mode": "local", "remove_instance": False},
    "OP_INSTANCE_FAILOVER": {"ignore_consistency": False},
}
# By operation, the parameters that owners may give: none that reaches beyond their instance.
OWNERS: Mapping[str, frozenset[str]] = {
    "OP_INSTANCE_REBOOT": frozenset({"reboot_type", "shutdown_timeout"}),
    "OP_INSTANCE_REINSTALL": frozenset({"os", "start"}),
    "OP_INSTANCE_SHUTDOWN": frozenset({"timeout", "force"}),
    "OP_INSTANCE_STARTUP": frozenset(),
}


def may(user: User, route: Route, call: Call, copy: Copy, *, is_closed: bool) -> bool:
    """Tell whether a user may do what is asked.

    Args:
        user: who asks.
        route: for what.
        call: with which words.
        copy: what there is, with its tags.
        is_closed: reading takes a right, too.
    """
    if WRITE in user.options:
        return True
    if route.access is Access.OPEN and not is_closed:
        return True
    if route.access in (Access.OPEN, Access.READ) and not user.options.isdisjoint({READ, OPERATOR}):
        return True
    if OPERATOR in user.options:
        return route.path in JOB_CHANGES or _may_operator(route, call)
    return bool(user.owns) and _may_owner(user, route, call, copy)


def _may_operator(route: Route, call: Call) -> bool:
    body = call.body if isinstance(call.body, dict) else {}
    harmless = HARMLESS.get(route.opcode, {})
    values = ((body.get(name), value) for name, value in harmless.items())
    return route.opcode in OPERATORS and all(given in (None, only) for given, only in values)


def _may_owner(user: User, route: Route, call: Call, copy: Copy) -> bool:
    if route.kind == "job":
        return _gave(user, copy, call)
    if route.kind != INSTANCE:
        return False
    try:
        row = copy.find(INSTANCE, next(iter(call.named.values())))
    except NotFound:
        return False
    if user.owns.isdisjoint(row.values()["tags"]):
        return False
    if route.access is not Access.WRITE:
        return not route.is_submission
    allowed = OWNERS.get(route.opcode)
    return allowed is not None and allowed.issuperset(_given(route, call))


def _given(route: Route, call: Call) -> set[str]:
    """Return the parameters of the operation that a request gives, by its body or its query."""
    body = set(call.body) if isinstance(call.body, dict) else set()
    words = {**route.takes.flags, **route.takes.texts}
    return body | {parameter for word, parameter in words.items() if word in call.query}


def _gave(user: User, copy: Copy, call: Call) -> bool:
    """Tell whether a user has given a job."""
    row = copy.job(int(call.named["job"]))
    if row is None:
        return False
    ops: list[dict[str, Any]] = row.values()["ops"]
    return any(
        source == REASON and text.startswith(f"{user.name} from ")
        for op in ops
        for source, text, *_ in op.get("reason", ())
    )


REASON = "gantry:rapi"
"""The source of the reason that says who has given a job."""
