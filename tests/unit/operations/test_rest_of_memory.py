"""How the rest of a guest's memory goes that has moved by post-copy."""

import pytest

from common.names import InstanceId, InstanceName, MiB
from common.noderpc.instances import GuestReport, GuestState, Rest
from coordinator.operations.instance.rest_of_memory import Course, course_of

ALIVE, UNKNOWN, MIGRATED = GuestState.RUNNING, GuestState.UNKNOWN, GuestState.MIGRATED
NONE, COMES, CUT = Rest.NONE, Rest.COMES, Rest.CUT


@pytest.mark.parametrize(
    ("there", "here", "course"),
    [
        (None, (MIGRATED, CUT), Course.OVER),
        ((GuestState.STOPPED, NONE), (MIGRATED, CUT), Course.OVER),
        ((ALIVE, NONE), (MIGRATED, NONE), Course.OVER),
        ((ALIVE, NONE), (MIGRATED, CUT), Course.OVER),  # its last word was lost
        ((ALIVE, NONE), None, Course.OVER),
        ((ALIVE, COMES), (MIGRATED, COMES), Course.COMES),
        ((ALIVE, COMES), (MIGRATED, NONE), Course.COMES),
        ((ALIVE, COMES), (MIGRATED, CUT), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, COMES), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, CUT), Course.CUT),
        ((ALIVE, CUT), (MIGRATED, NONE), Course.LOST),
        ((ALIVE, CUT), None, Course.LOST),
        ((UNKNOWN, CUT), (MIGRATED, CUT), Course.CUT),
        ((UNKNOWN, CUT), (MIGRATED, COMES), Course.HANGS),  # its line may be fine
        ((UNKNOWN, CUT), (MIGRATED, NONE), Course.HANGS),
        ((UNKNOWN, NONE), (MIGRATED, CUT), Course.HANGS),
        ((GuestState.INCOMING, NONE), (MIGRATED, CUT), Course.HANGS),
        ((GuestState.INCOMING, NONE), None, Course.LOST),
    ],
)
def test_how_it_goes_follows_from_what_both_nodes_tell(
    there: tuple[GuestState, Rest] | None, here: tuple[GuestState, Rest] | None, course: Course
) -> None:
    assert course_of(_told(there), _told(here)) is course


def _told(what: tuple[GuestState, Rest] | None) -> GuestReport | None:
    if what is None:
        return None
    return GuestReport(
        id=InstanceId("web1"),
        name=InstanceName("web1"),
        state=what[0],
        rest=what[1],
        memory=MiB(1),
        vcpus=1,
    )
