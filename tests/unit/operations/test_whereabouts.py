"""Where an instance is, concluded from what all nodes have of it."""

import pytest

from common.errors import Conflict
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.model.template import DiskTemplate
from common.names import GroupId, InstanceId, InstanceName, MiB, NodeId, NodeName, TaskId
from common.noderpc.instances import GuestReport, GuestState, Rest
from coordinator.operations.instance.whereabouts import Found, Whereabouts, decide

WEB1 = Instance(
    uuid=InstanceId("11111111-0000-4000-8000-000000000001"), name=InstanceName("web1"),
    primary_node=NodeId("alpha"), hypervisor="kvm", disk_template=DiskTemplate.SHAREDFILE,
    maybe_on=(NodeId("alpha"), NodeId("beta")),
)  # fmt: skip


def on(
    node: str,
    state: GuestState,
    move: str = "",
    *,
    arrived: bool = False,
    rest: Rest = Rest.NONE,
) -> Found:
    return Found(
        Node(uuid=NodeId(node), name=NodeName(node), group=GroupId("g"), primary_ip="192.0.2.1"),
        GuestReport(
            id=WEB1.uuid, name=WEB1.name, state=state, memory=MiB(1), vcpus=1,
            move=move, arrived=arrived, rest=rest,
            silent_s=9.0 if state is GuestState.UNKNOWN else 0.0,
        ),
    )  # fmt: skip


def refs(*names: str) -> tuple[NodeRef, ...]:
    return tuple(NodeRef(uuid=NodeId(name), name=NodeName(name)) for name in names)


def nowhere(*shells: str) -> Whereabouts:
    return Whereabouts(NodeId("alpha"), runs=False, resume=None, shells=refs(*shells))


RUNNING, PAUSED, INCOMING = GuestState.RUNNING, GuestState.PAUSED, GuestState.INCOMING
MIGRATED, STOPPED, UNKNOWN = GuestState.MIGRATED, GuestState.STOPPED, GuestState.UNKNOWN
COMES, CUT = Rest.COMES, Rest.CUT


@pytest.mark.parametrize(
    ("found", "where"),
    [
        ((), nowhere()),
        ((on("alpha", RUNNING),), Whereabouts(NodeId("alpha"), runs=True, resume=None, shells=())),
        ((on("alpha", RUNNING), on("beta", INCOMING, "m1", arrived=True)),
         Whereabouts(NodeId("alpha"), runs=True, resume=None, shells=refs("beta"))),
        ((on("alpha", MIGRATED, "m1"), on("beta", PAUSED)),
         Whereabouts(NodeId("beta"), runs=True, resume=None, shells=refs("alpha"))),
        ((on("alpha", MIGRATED, "m1"), on("beta", INCOMING, "m1", arrived=True)),
         Whereabouts(NodeId("beta"), runs=False, resume=TaskId("m1"), shells=refs("alpha"))),
        ((on("alpha", MIGRATED, "m1"), on("beta", INCOMING, "m2", arrived=True)),
         nowhere("alpha", "beta")),
        ((on("alpha", MIGRATED), on("beta", INCOMING, arrived=True)), nowhere("alpha", "beta")),
        ((on("beta", INCOMING, "m1", arrived=True),), nowhere("beta")),
        ((on("alpha", STOPPED), on("beta", INCOMING, "m1", arrived=True)),
         nowhere("alpha", "beta")),
    ],
)  # fmt: skip
def test_guest_that_came_goes_on_only_if_its_source_says_that_it_left_by_this_move(
    found: tuple[Found, ...], where: Whereabouts
) -> None:
    assert decide(WEB1, found) == where


def in_two(source: str, target: str) -> Whereabouts:
    return Whereabouts(
        NodeId(target), runs=True, resume=None, shells=refs(source), sends=refs(source)[0]
    )


@pytest.mark.parametrize(
    "found",
    [
        (on("alpha", MIGRATED, "m1", rest=COMES), on("beta", RUNNING, "m1", rest=COMES)),
        (on("alpha", MIGRATED, "m1", rest=CUT), on("beta", RUNNING, "m1", rest=CUT)),
        (on("alpha", MIGRATED, "m1", rest=CUT), on("beta", RUNNING, "m1")),
        (on("alpha", MIGRATED, "m1"), on("beta", RUNNING, "m1", rest=COMES)),
        (on("alpha", MIGRATED, "m1", rest=CUT), on("beta", UNKNOWN, "m1", rest=CUT)),
    ],
)  # fmt: skip
def test_what_another_node_may_have_of_its_memory_is_seen_to(found: tuple[Found, ...]) -> None:
    assert decide(WEB1, found) == in_two("alpha", "beta")


@pytest.mark.parametrize(
    "found",
    [
        (on("alpha", MIGRATED, "m1"), on("beta", RUNNING, "m1", rest=CUT)),
        (on("beta", RUNNING, "m1", rest=CUT),),
        (on("beta", RUNNING, "m1", rest=COMES),),  # which it says until it misses something
    ],
)
def test_guest_that_lacks_what_no_node_has_is_not_settled(found: tuple[Found, ...]) -> None:
    with pytest.raises(Conflict, match="lacks a part of its memory on beta"):
        decide(WEB1, found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((on("alpha", RUNNING), on("beta", PAUSED)), "runs on alpha and beta at once"),
        ((on("alpha", UNKNOWN), on("beta", RUNNING)), "on alpha has not answered for 9 s"),
        ((on("alpha", UNKNOWN), on("beta", INCOMING, "m1", arrived=True)), "has not answered"),
        ((on("alpha", MIGRATED, "m1"), on("beta", UNKNOWN, "m1", rest=CUT)), "has not answered"),
        ((on("beta", UNKNOWN, "m1", rest=CUT),), "has not answered"),
        ((on("alpha", MIGRATED, "m1", rest=CUT), on("beta", UNKNOWN)), "has not answered"),
        ((on("alpha", MIGRATED, "m1"), on("beta", INCOMING, "m1")), "has left for beta, whose"),
    ],
)
def test_what_is_not_known_is_not_guessed(found: tuple[Found, ...], words: str) -> None:
    with pytest.raises(Conflict, match=words):
        decide(WEB1, found)
