"""Debian's own REST server has each route of the catalogue, for the same opcode."""

import re

from coordinator.operations.catalogue import CATALOGUE
from tests.diff.debian_ganeti import ask_libraries, needs_ganeti

pytestmark = needs_ganeti

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
        if opcode is not None:
            told[f"{method} {path}"] = opcode.OP_ID
print(json.dumps(told))
"""


def test_routes_are_ganetis_and_none_is_forgotten() -> None:
    theirs: dict[str, str] = ask_libraries(ROUTES)
    for entry in CATALOGUE.values():
        known = [unnamed(route) for route, opcode in theirs.items() if opcode == entry.opcode]
        assert unnamed(entry.route) in known if known else not entry.route, (entry.opcode, known)


def unnamed(route: str) -> str:
    """Leave out what is between braces: theirs say what it is, ours which field gets it."""
    return re.sub(r"{\w+}", "{}", route)
