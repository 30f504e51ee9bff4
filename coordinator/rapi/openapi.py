"""A description of the interface for tools, OpenAPI 3.1, made of what the interface itself reads.

Paths and methods come from the routes, what a body may have from the fields of operations, what an
answer has from the fields of lists. Needs all of these loaded, so it is imported when asked for.

Source: https://spec.openapis.org/oas/v3.1.1
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from common.version import VERSION
from coordinator.operations.base import REGISTRY, Operation
from coordinator.operations.registry import load_all
from coordinator.queries.field import Field, Kind
from coordinator.queries.subject import SUBJECTS
from coordinator.rapi.arguments import ARGUMENTS
from coordinator.rapi.fields import BRIEF, FIELDS
from coordinator.rapi.routes import JSON, ROUTES, Route
from coordinator.rapi.users import Access

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_TYPES: Mapping[Kind, Json] = {
    Kind.TEXT: {"type": ["string", "null"]},
    Kind.BOOL: {"type": ["boolean", "null"]},
    Kind.NUMBER: {"type": ["integer", "null"]},
    Kind.FLOAT: {"type": ["number", "null"]},
    Kind.UNIT: {"type": ["integer", "null"], "description": "MiB"},
    Kind.TIMESTAMP: {"type": ["number", "null"], "description": "seconds since 1970"},
}
_ERROR: Json = {
    "type": "object",
    "properties": {
        "code": {"type": "integer"},
        "message": {"type": "string"},
        "explain": {"type": ["string", "null"]},
    },
    "required": ["code", "message", "explain"],
}
_COMMON: Json = {  # attributes that any operation may have
    "depends": {"type": ["array", "null"], "description": "[[job, [statuses]], …]"},
    "priority": {"type": "integer", "enum": [-10, 0, 10]},
    "comment": {"type": ["string", "null"]},
}


def describe() -> Json:
    """Return the whole document."""
    load_all()
    _, operations = msgspec.json.schema_components(list(REGISTRY.values()), ref_template=_REF)
    schemas = {**operations, **_rows(), "Error": _ERROR}
    paths: dict[str, Json] = {}
    for route in sorted(ROUTES, key=lambda route: (route.path, route.method)):
        if route.is_supported:
            paths.setdefault(route.path, {})[route.method.lower()] = _method(route, operations)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gantry",
            "version": VERSION,
            "description": "Ganeti's remote API, version 2, and what Gantry adds to it.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"password": {"type": "http", "scheme": "basic"}},
            "responses": {
                "error": {
                    "description": "What is wrong",
                    "content": {JSON: {"schema": _ref("Error")}},
                }
            },
        },
    }


def _rows() -> Json:
    """Return what is told of each kind of object."""
    return {
        kind.capitalize(): {
            "type": "object",
            "properties": {name: _value(SUBJECTS[kind].fields[name]) for name in names},
        }
        for kind, names in FIELDS.items()
        if names
    }


def _value(field: Field[Any]) -> Json:
    return {"description": field.doc, **_TYPES.get(field.kind, {})}


def _method(route: Route, operations: Mapping[str, Json]) -> Json:
    told: Json = {
        "operationId": f"{route.method.lower()}_{route.handler}",
        "summary": _summary(route),
        "tags": [route.path.split("/")[2] if route.path.count("/") > 1 else "version"],
        "parameters": [*map(_named, route.pattern.groupindex), *map(_argument, route.arguments)],
        "responses": {
            "200": {
                "description": "Done" if route.read else "The number of the job",
                "content": {route.media: {"schema": _answer(route)}},
            },
            "default": {"$ref": "#/components/responses/error"},
        },
    }
    if route.access is not Access.OPEN:
        told["security"] = [{"password": []}]
    if (body := _body(route, operations)) is not None:
        told["requestBody"] = {"content": {JSON: {"schema": body}}}
    return told


def _summary(route: Route) -> str:
    if route.is_submission:
        doc = _operation(route).__doc__ or ""
        return doc.partition("\n")[0].rstrip(".")
    return route.title


def _operation(route: Route) -> type[Operation[Any, Any]]:
    return REGISTRY[route.opcode]


def _named(name: str) -> Json:
    number = name in {"job", "disk"}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "integer" if number else "string"},
    }


def _argument(name: str) -> Json:
    schema, what = ARGUMENTS[name]
    return {"name": name, "in": "query", "schema": schema, "description": what}


def _body(route: Route, operations: Mapping[str, Json]) -> Json | None:
    if not route.is_submission:
        return {"type": "object"} if route.has_body else None
    takes = route.takes
    if takes.body != "object":
        return {"type": takes.body} if takes.body else None
    schema = operations[_operation(route).__name__]
    elsewhere = {*route.pattern.groupindex, *takes.fixed, *takes.forbidden}
    properties = {n: p for n, p in schema["properties"].items() if n not in elsewhere}
    required = [name for name in schema.get("required", ()) if name not in elsewhere]
    old = {o: {"description": f"the same as {n}"} for o, n in takes.renamed.items()}
    if route.path == "/2/instances":
        properties["__version__"] = {"const": 1}
        required = ["__version__", *required]
    told = {"type": "object", "properties": {**properties, **old, **_COMMON}}
    return told | ({"required": required} if required and not old else {})


def _answer(route: Route) -> Json:
    if route.is_submission:
        return {"type": "integer"}
    if route.media != JSON:
        return {"type": "string"}
    if route.path.endswith("/tags") or route.path == "/2/features":
        return {"type": "array", "items": {"type": "string"}}
    found = re.fullmatch(r"/2/(\w+)s(/{\w+})?", route.path)
    if not found or found[1] not in FIELDS or route.method != "GET":
        return {}
    kind = found[1]
    if found[2]:
        return _ref(kind.capitalize())
    short: Json = {
        "type": "object",
        "properties": {"id": {}, "name": {}, "uri": {"type": "string"}},
        "required": ["uri"],
    }
    left_out = sorted({*FIELDS[kind]} - {*BRIEF.get(kind, FIELDS[kind])})
    told = f"with bulk, without {', '.join(left_out)}" if left_out else "with bulk"
    whole = {"allOf": [_ref(kind.capitalize())], "description": told}
    return {"type": "array", "items": {"anyOf": [short, whole]}}


def _ref(name: str) -> Json:
    return {"$ref": _REF.format(name=name)}
