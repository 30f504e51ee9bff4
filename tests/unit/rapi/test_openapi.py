"""The description for tools tells of every route, and refers to nothing that is not there."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from coordinator.operations.registry import load_all
from coordinator.rapi.arguments import ARGUMENTS
from coordinator.rapi.manual import page
from coordinator.rapi.openapi import describe
from coordinator.rapi.routes import ROUTES


@cache
def document() -> Any:
    return json.loads(json.dumps(describe()))


def everything(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from everything(each)


def methods() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, told in document()["paths"].items():
        for method, one in told.items():
            yield method, path, one


def test_every_route_is_described() -> None:
    there = {(route.method.lower(), route.path) for route in ROUTES if route.is_supported}
    assert {(method, path) for method, path, _ in methods()} == there
    for method, path, told in methods():
        assert told["summary"], (method, path)
        assert told["responses"].keys() == {"200", "default"}


def test_names_of_operations_are_unique() -> None:
    names = [told["operationId"] for _, _, told in methods()]
    assert len(names) == len({*names})


def test_references_lead_somewhere() -> None:
    for each in everything(document()):
        if (ref := each.get("$ref")) is not None:
            found = document()
            for part in ref.removeprefix("#/").split("/"):
                found = found[part]


def test_what_a_path_names_is_a_parameter() -> None:
    for method, path, told in methods():
        named = {p["name"] for p in told["parameters"] if p["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}, method


def test_every_argument_has_a_word_and_is_used() -> None:
    used = {name for route in ROUTES for name in route.arguments}
    assert used == {*ARGUMENTS}


def test_bodies_are_what_operations_take() -> None:
    load_all()
    told = document()["paths"]["/2/instances"]["post"]["requestBody"]
    body = told["content"]["application/json"]["schema"]
    assert {"__version__", "instance_name", "disks", "nics", "os"} <= body["properties"].keys()
    told = document()["paths"]["/2/nodes/{node_name}/role"]["put"]["requestBody"]
    assert told["content"]["application/json"]["schema"] == {"type": "string"}


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text, headers = page()
    assert b"http://" not in text
    assert b"https://" not in text
    assert b"src=" not in text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
