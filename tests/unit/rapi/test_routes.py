"""Paths and methods are found as Ganeti's interface has them."""

from http import HTTPStatus

import pytest

from coordinator.operations.catalogue import CATALOGUE
from coordinator.rapi.failures import Refusal
from coordinator.rapi.routes import ROUTES, Router, unnamed
from coordinator.rapi.submissions import TAKES


def test_every_operation_with_a_route_is_there_once() -> None:
    mine = [unnamed(f"{route.method} {route.path}") for route in ROUTES]
    assert len(mine) == len({*mine})
    for entry in CATALOGUE.values():
        assert not entry.route or unnamed(entry.route) in mine, entry.opcode


def test_nothing_unusual_is_said_of_routes_that_do_not_exist() -> None:
    assert {*TAKES} <= {unnamed(f"{route.method} {route.path}") for route in ROUTES}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/2/instances/web1.example.com", "instances_name"),
        ("PUT", "/2/instances/web1/startup", "instances_name_startup"),
        ("POST", "/2/instances/web1/disk/0/grow", "instances_name_disk_grow"),
        ("GET", "/2/jobs/17/wait", "jobs_id_wait"),
        ("PUT", "/2/tags", "tags"),
    ],
)
def test_handler_is_named_as_in_ganetis_trail(method: str, path: str, expected: str) -> None:
    assert Router().find(method, path)[0].handler == expected


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/2/nope", HTTPStatus.NOT_FOUND),
        ("GET", "/2/nodes//", HTTPStatus.NOT_FOUND),
        ("GET", "/2/nodes/a/b/c", HTTPStatus.NOT_FOUND),
        ("GET", "/2/nodes/a%2fb", HTTPStatus.NOT_FOUND),
        ("GET", "/2/jobs/x", HTTPStatus.NOT_FOUND),
        ("GET", "/2/jobs/1\n", HTTPStatus.NOT_FOUND),
        ("POST", "/2/nodes/beta", HTTPStatus.NOT_IMPLEMENTED),
        ("PATCH", "/2/instances", HTTPStatus.NOT_IMPLEMENTED),
    ],
)
def test_what_is_not_there_is_refused(method: str, path: str, status: HTTPStatus) -> None:
    with pytest.raises(Refusal) as refused:
        Router().find(method, path)
    assert refused.value.status is status


@pytest.mark.parametrize("path", ["/2", "/2/nodes", "/2/nodes/beta/role", "/2/jobs/1", "/version"])
def test_a_slash_at_the_end_changes_nothing(path: str) -> None:
    route, named = Router().find("GET", path)
    assert Router().find("GET", f"{path}/") == (route, named)
