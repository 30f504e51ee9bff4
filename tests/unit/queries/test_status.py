import pytest

from common.model.instance import AdminState
from common.noderpc.instances import GuestState
from coordinator.queries.instance_status import instance_status

UP, DOWN, OFF = AdminState.UP, AdminState.DOWN, AdminState.OFFLINE
RUNNING, STOPPED = GuestState.RUNNING, GuestState.STOPPED


@pytest.mark.parametrize(
    ("wanted", "offline", "answered", "here", "elsewhere", "status"),
    [
        (UP, True, False, None, True, "ERROR_nodeoffline"),
        (DOWN, True, False, None, False, "ERROR_nodeoffline"),
        (UP, False, False, None, True, "ERROR_nodedown"),
        (UP, False, True, RUNNING, False, "running"),
        (UP, False, True, GuestState.PAUSED, False, "running"),
        (UP, False, True, RUNNING, True, "running"),
        (DOWN, False, True, RUNNING, False, "ERROR_up"),
        (OFF, False, True, RUNNING, False, "ERROR_up"),
        (UP, False, True, None, True, "ERROR_wrongnode"),
        (UP, False, True, GuestState.MIGRATED, True, "ERROR_wrongnode"),
        (DOWN, False, True, None, True, "ERROR_wrongnode"),
        (UP, False, True, STOPPED, False, "ERROR_down"),
        (UP, False, True, GuestState.INCOMING, False, "ERROR_down"),
        (UP, False, True, None, False, "ERROR_down"),
        (DOWN, False, True, None, False, "ADMIN_down"),
        (DOWN, False, True, STOPPED, False, "ADMIN_down"),
        (OFF, False, True, None, False, "ADMIN_offline"),
    ],
)
def test_status(
    wanted: AdminState,
    offline: bool,
    answered: bool,
    here: GuestState | None,
    elsewhere: bool,
    status: str,
) -> None:
    found = instance_status(
        wanted, offline=offline, answered=answered, here=here, elsewhere=elsewhere
    )
    assert found == status


@pytest.mark.parametrize(
    ("wanted", "here", "status"),
    [
        (UP, STOPPED, "USER_down"),
        (DOWN, None, "USER_down"),
        (UP, RUNNING, "running"),
        (DOWN, RUNNING, "ERROR_up"),
        (OFF, STOPPED, "ADMIN_offline"),
    ],
)
def test_status_of_what_its_user_has_turned_off(
    wanted: AdminState, here: GuestState | None, status: str
) -> None:
    found = instance_status(
        wanted, offline=False, answered=True, here=here, elsewhere=False, by_user=True
    )
    assert found == status
