"""What members of the group cannot order, whatever way they take."""

import os
import socket
from typing import Any

import pytest

from common.errors import InvalidRequest
from common.luxi.answers import Request
from coordinator.master.roots_own import check_may, user_behind
from coordinator.operations.registry import load_all

JANE = 1000 if os.geteuid() != 1000 else 1001
ADD: dict[str, Any] = {
    "OP_ID": "OP_NODE_ADD", "node_name": "evil", "primary_ip": "192.0.2.9", "token": "t",
}  # fmt: skip
PROMOTE = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "gamma", "master_candidate": True}
REPLACE = {
    "OP_ID": "OP_NODE_SET_PARAMS",
    "node_name": "beta",
    "offline": True,
    "auto_promote": True,
}
DESTROY = {"OP_ID": "OP_CLUSTER_DESTROY"}
FENCE = {"OP_ID": "OP_NODE_FENCE", "node_name": "beta"}
HAVE_FENCED = {"OP_ID": "OP_CLUSTER_SET_PARAMS", "maintain_node_health": True}
HAVE_NOBODY_FENCED = {"OP_ID": "OP_CLUSTER_SET_PARAMS", "maintain_node_health": False}
DRAIN = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "gamma", "drained": True}
DEMOTE = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "gamma", "master_candidate": False}
START = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}

load_all()


def ways(*ops: dict[str, Any]) -> list[Request]:
    """Return all requests that have a job of these operations done."""
    return [
        Request(method="SubmitJob", args=(list(ops),)),
        Request(method="SubmitJobToDrainedQueue", args=(list(ops),)),
        Request(method="SubmitManyJobs", args=([[START], list(ops)],)),
    ]


@pytest.mark.parametrize(
    "op", [ADD, PROMOTE, REPLACE, DESTROY, FENCE, HAVE_FENCED], ids=lambda op: str(op["OP_ID"])
)
def test_power_over_nodes_is_given_and_ended_by_root_alone(op: dict[str, Any]) -> None:
    for request in (*ways(op), *ways(START, op)):
        with pytest.raises(InvalidRequest, match=f"{op['OP_ID']} .* is for root of the master"):
            check_may(request, JANE)
        check_may(request, 0)
        check_may(request, os.geteuid())


@pytest.mark.parametrize("op", [PROMOTE, DESTROY], ids=lambda op: str(op["OP_ID"]))
def test_what_is_roots_stays_so_if_another_operation_submits_it(op: dict[str, Any]) -> None:
    once = {"OP_ID": "OP_TEST_DUMMY", "submit_jobs": [[START], [START, op]]}
    for outer in (once, {"OP_ID": "OP_TEST_DUMMY", "submit_jobs": [[once]]}):
        with pytest.raises(InvalidRequest, match=r"OP_TEST_DUMMY .* is for root of the master"):
            check_may(Request(method="SubmitJob", args=([outer],)), JANE)


@pytest.mark.parametrize(
    "op", [DRAIN, DEMOTE, START, HAVE_NOBODY_FENCED], ids=lambda op: str(op["OP_ID"])
)
def test_the_daily_work_is_the_groups(op: dict[str, Any]) -> None:
    for request in ways(op):
        check_may(request, JANE)


@pytest.mark.parametrize("args", [(), (None,), ({},), ("text",), ([7],), ([[7]],), ([[{}]],)])
@pytest.mark.parametrize("method", ["SubmitJob", "SubmitManyJobs", "Query"])
def test_nonsense_is_left_to_others_to_refuse(method: str, args: tuple[Any, ...]) -> None:
    check_may(Request(method=method, args=args), JANE)


def test_the_kernel_says_who_has_connected() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert user_behind(ours) == os.geteuid()


@pytest.mark.parametrize("method", ["RestUsers", "ChangeRestUsers"])
def test_users_of_the_rest_interface_are_for_root_alone(method: str) -> None:
    request = Request(method=method, args=("", "ci"))
    with pytest.raises(InvalidRequest, match=f"{method} is for root of the master"):
        check_may(request, JANE)
    check_may(request, 0)
    check_may(request, os.geteuid())
