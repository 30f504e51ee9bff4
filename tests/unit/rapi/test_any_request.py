"""Whatever somebody sends becomes parameters or a refusal, and nothing else."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from common.rest_users import parse_users
from coordinator.rapi.call import Call, parse_query
from coordinator.rapi.conditions import accepts, check_unchanged, is_known
from coordinator.rapi.failures import Refusal
from coordinator.rapi.routes import ROUTES, Router
from coordinator.rapi.users import credentials
from tests.support.seeds import examples

KEYS = st.sampled_from(
    ["name", "os", "instances", "disks", "hvparams", "usb_devices", "__version__", "mode", "live",
     "type", "tag", "dry-run", "force", "fields", "static", "instance_name", "changes",
     "output_fields"]
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(), inner, max_size=5)
    ),
    max_leaves=10,
)
QUERIES = st.lists(st.tuples(KEYS, st.text(max_size=5)), max_size=5).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
SUBMISSIONS = [route for route in ROUTES if route.opcode and route.read is None]


@given(st.sampled_from(SUBMISSIONS), QUERIES, JSON)
@settings(max_examples=examples(300))
def test_any_body_and_query_are_parameters_or_are_refused(
    route: Any, query: str, body: Any
) -> None:
    named = dict.fromkeys(route.pattern.groupindex, "7")
    try:
        call = Call(route.method, route.path, named, parse_query(query), body, "alice", "::1")
        parameters = route.takes.parameters(call)
    except Refusal:
        return
    assert isinstance(parameters, dict)
    assert all(isinstance(name, str) for name in parameters)


def refusal_of(function: Callable[..., Any], *args: Any) -> int | None:
    """Return the status with which a function refuses; None if it does not."""
    try:
        function(*args)
    except Refusal as refusal:
        return refusal.status
    return None


@given(st.text(), st.text())
def test_any_path_is_found_or_refused(method: str, path: str) -> None:
    assert refusal_of(Router().find, method, path) in {None, 404, 501}


@given(st.text())
def test_any_header_is_read(text: str) -> None:
    credentials(text)
    accepts(text, "application/json")
    is_known(text, "x")
    assert refusal_of(check_unchanged, text, 1) in {None, 412}


@given(st.text(), st.text())
def test_any_file_of_users_is_read(text: str, password: str) -> None:
    for user in parse_users(text).values():
        user.has_password(password)
        assert user.role
        assert user.expires_s is not None
