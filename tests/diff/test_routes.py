"""Our REST server has each route of Debian's own, and the catalogue those of the same opcode."""

import re

from coordinator.operations.catalogue import CATALOGUE
from coordinator.rapi.routes import ROUTES as OURS
from tests.diff.debian_ganeti import ask_libraries, needs_ganeti

pytestmark = needs_ganeti

ADDED_LATER = {"PUT /2/networks/{}/rename"}  # in Ganeti 3.1
ONLY_DESIGNED = {"POST /2/instances/{}/create"}  # as Ganeti's design has it
OUR_OWN = {"GET /2/events", "GET /metrics", "GET /openapi.json"}
ROUTES = """
import json
from ganeti.rapi import connector
kinds = ("node", "instance", "group", "network")
names = [f"{{{kind}_name}}" for kind in kinds]
handlers = connector.GetHandlers(*names, "{job}", "{disk}", "{filter}", "{resource}")
told = {}
for path, handler in handlers.items():
    path = getattr(path, "pattern", path).strip("^$").replace("(", "").replace(")", "")
    for method in ("GET", "PUT", "POST", "DELETE"):
        opcode = getattr(handler, f"{method}_OPCODE", None)
        if opcode is not None or hasattr(handler, method):
            told[f"{method} {path}"] = opcode.OP_ID if opcode else ""
print(json.dumps(told))
"""


def test_routes_are_ganetis_and_none_is_forgotten() -> None:
    theirs: dict[str, str] = ask_libraries(ROUTES)
    for entry in CATALOGUE.values():
        if unnamed(entry.route) in ADDED_LATER:
            continue
        known = [unnamed(route) for route, opcode in theirs.items() if opcode == entry.opcode]
        assert unnamed(entry.route) in known if known else not entry.route, (entry.opcode, known)


def test_every_address_of_ganetis_is_ours() -> None:
    theirs: dict[str, str] = ask_libraries(ROUTES)
    ours = {unnamed(f"{route.method} {route.path}") for route in OURS}
    assert {unnamed(route) for route in theirs} <= ours
    assert ours - {unnamed(route) for route in theirs} == ADDED_LATER | ONLY_DESIGNED | OUR_OWN


def unnamed(route: str) -> str:
    """Leave out what is between braces: theirs say what it is, ours which field gets it."""
    return re.sub(r"{\w+}", "{}", route)
