"""Whether an instance is as it should be, in one word."""

from enum import StrEnum

from common.model.instance import AdminState
from common.noderpc.instances import GuestState


class InstanceStatus(StrEnum):
    """Names are Ganeti's."""

    RUNNING = "running"
    ADMIN_DOWN = "ADMIN_down"
    ADMIN_OFFLINE = "ADMIN_offline"
    USER_DOWN = "USER_down"
    ERROR_DOWN = "ERROR_down"
    ERROR_UP = "ERROR_up"
    ERROR_WRONGNODE = "ERROR_wrongnode"
    ERROR_NODEDOWN = "ERROR_nodedown"
    ERROR_NODEOFFLINE = "ERROR_nodeoffline"


def instance_status(
    wanted: AdminState,
    *,
    offline: bool,
    answered: bool,
    here: GuestState | None,
    elsewhere: bool,
    by_user: bool = False,
) -> InstanceStatus:
    """Compare what is wanted with what was seen.

    Args:
        wanted: by the operator.
        offline: the primary node is marked so.
        answered: the primary node has answered.
        here: the guest on the primary node, if there is one.
        elsewhere: it is alive on another node.
        by_user: its user has turned it off, and may do so.

    Source: Ganeti's query.py.
    """
    if offline:
        return InstanceStatus.ERROR_NODEOFFLINE
    if not answered:
        return InstanceStatus.ERROR_NODEDOWN
    if here is GuestState.UNKNOWN:
        # Ganeti has no word for a process that does not answer, and Debian's tools refuse words
        # that it does not have. This one says what follows: nobody knows, and nobody acts.
        return InstanceStatus.ERROR_NODEDOWN
    if here is not None and here.is_alive:
        up = wanted is AdminState.UP
        return InstanceStatus.RUNNING if up else InstanceStatus.ERROR_UP
    if elsewhere:
        return InstanceStatus.ERROR_WRONGNODE
    match wanted:
        case AdminState.UP:
            return InstanceStatus.USER_DOWN if by_user else InstanceStatus.ERROR_DOWN
        case AdminState.DOWN:
            return InstanceStatus.USER_DOWN if by_user else InstanceStatus.ADMIN_DOWN
        case AdminState.OFFLINE:
            return InstanceStatus.ADMIN_OFFLINE
