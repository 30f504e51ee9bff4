"""How nodes have an instance's disks, and how that changes when it starts, stops or moves."""

from msgspec.structs import replace

from common.messages import Order
from common.model.node import NodeRef
from common.noderpc.disks import Access


class Hold(Order):
    """What one node is to have: the disks attached in some way, or not at all.

    One that ``is_optional`` is left out if the node does not answer.
    """

    node: NodeRef
    access: Access | None
    is_optional: bool = False


class Handover(Order):
    """What nodes are asked one after the other, and what undoes that.

    These are wishes: asking twice, or going on where another left off, changes nothing. A plan
    keeps them, so that whoever resumes a job does what was planned.
    """

    do: tuple[Hold, ...] = ()
    undo: tuple[Hold, ...] = ()


def sole(*nodes: NodeRef) -> tuple[Hold, ...]:
    return tuple(Hold(node=node, access=Access.SOLE) for node in nodes)


def shared(*nodes: NodeRef) -> tuple[Hold, ...]:
    return tuple(Hold(node=node, access=Access.SHARED) for node in nodes)


def standby(*nodes: NodeRef) -> tuple[Hold, ...]:
    return tuple(Hold(node=node, access=Access.STANDBY) for node in nodes)


def alone(node: NodeRef) -> tuple[Hold, ...]:
    return (Hold(node=node, access=Access.ALONE),)


def none(*nodes: NodeRef) -> tuple[Hold, ...]:
    return tuple(Hold(node=node, access=None) for node in nodes)


def optional(*holds: Hold) -> tuple[Hold, ...]:
    return tuple(replace(hold, is_optional=True) for hold in holds)
