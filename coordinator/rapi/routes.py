"""All that can be asked: a row for each method of each path.

What submits a job follows from the catalogue of operations; what only reads is listed here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus

from common.exposition import MEDIA as FIGURES
from coordinator.operations.catalogue import CATALOGUE
from coordinator.rapi import asked, reads
from coordinator.rapi.events import MEDIA
from coordinator.rapi.failures import refused
from coordinator.rapi.fields import FIELDS
from coordinator.rapi.submissions import TAKES, Takes
from coordinator.rapi.users import Access

JSON = "application/json"
DESCRIPTION = "/openapi.json"
METRICS = "/metrics"
JOB_CHANGES = frozenset({"/2/jobs/{job}", "/2/jobs/{job}/wait"})


@dataclass(frozen=True)
class Route:
    """One method of one path; ``{…}`` stands for a name.

    It has ``read``, submits a job of ``opcode``, or is what the service itself has. Title, query
    and whether there is a body are told of what is no submission.
    """

    method: str
    path: str
    access: Access
    read: reads.Read | None = None
    title: str = ""
    query: tuple[str, ...] = ()
    opcode: str = ""
    media: str = JSON
    has_body: bool = False

    @property
    def handler(self) -> str:
        """What Ganeti calls it in the trail of reasons."""
        words = re.sub(r"{(\w+)}", _named_by_ganeti, self.path.removeprefix("/2"))
        name = re.sub(r"[^a-z]+", "_", words.strip("/"))
        return name or ("2" if self.path == "/2" else "root")

    @property
    def kind(self) -> str:
        """The kind of object that the path begins with; empty if none is named."""
        found = re.match(r"/2/(\w+)s/{", self.path)
        return found[1] if found and found[1] in FIELDS else ""

    @property
    def takes(self) -> Takes:
        return TAKES.get(f"{self.method} {unnamed(self.path)}", Takes())

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the query."""
        return self.takes.arguments if self.is_submission else self.query

    @property
    def is_submission(self) -> bool:
        return bool(self.opcode) and self.read is None

    @property
    def is_supported(self) -> bool:
        return not self.opcode or self.opcode in CATALOGUE

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"{(\w+)}", _group, self.path) + r"\Z")


def unnamed(path: str) -> str:
    """Leave out what is between braces."""
    return re.sub(r"{\w+}", "{}", path)


_NUMBERS = frozenset({"job", "disk"})


def _group(found: re.Match[str]) -> str:
    form = "[0-9]{1,15}" if found[1] in _NUMBERS else r"[\w.-]+"
    return f"(?P<{found[1]}>{form})"


def _named_by_ganeti(found: re.Match[str]) -> str:
    return {"job": "id", "uuid": "uuid", "disk": "", "resource": ""}.get(found[1], "name")


_BULK, _FIELDS = ("bulk",), ("fields",)
_OPEN, _READ, _WRITE = Access.OPEN, Access.READ, Access.WRITE
# fmt: off
_READS = (
    Route("GET", "/", _OPEN, reads.nothing, "Nothing; for browsers, a page to try the interface"),
    Route("GET", "/2", _OPEN, reads.nothing, "Nothing"),
    Route("GET", "/version", _OPEN, reads.version, "The version of the interface"),
    Route("GET", DESCRIPTION, _OPEN, title="This description"),
    Route("GET", METRICS, _OPEN, reads.metrics, "Figures for Prometheus", media=FIGURES),
    Route("GET", "/2/features", _OPEN, reads.features, "Optional parts that there are"),
    Route("GET", "/2/info", _OPEN, reads.info, "All about the cluster itself"),
    Route("GET", "/2/nodes", _OPEN, reads.listing("node", "/2/nodes", "id"), "List nodes", _BULK),
    Route("GET", "/2/nodes/{node_name}", _OPEN, reads.node, "All about a node"),
    Route("GET", "/2/nodes/{node_name}/role", _OPEN, reads.role, "What a node is for"),
    Route("GET", "/2/nodes/{name}/tags", _OPEN, reads.tags("node"), "Tags of a node"),
    Route("GET", "/2/instances", _OPEN, reads.listing("instance", "/2/instances", "id"),
          "List instances", _BULK),
    Route("GET", "/2/instances/{instance_name}", _OPEN, reads.single("instance", "instance_name"),
          "All about an instance"),
    Route("GET", "/2/instances/{instance_name}/console", _READ, asked.console,
          "How to reach the console of an instance that runs"),
    Route("GET", "/2/instances/{name}/tags", _OPEN, reads.tags("instance"), "Tags of an instance"),
    Route("GET", "/2/networks", _OPEN, reads.listing("network", "/2/networks"), "List networks",
          _BULK),
    Route("GET", "/2/networks/{network_name}", _OPEN, reads.single("network", "network_name"),
          "All about a network"),
    Route("GET", "/2/networks/{name}/tags", _OPEN, reads.tags("network"), "Tags of a network"),
    Route("GET", "/2/groups", _OPEN, reads.listing("group", "/2/groups"), "List groups of nodes",
          _BULK),
    Route("GET", "/2/groups/{group_name}", _OPEN, reads.single("group", "group_name"),
          "All about a group of nodes"),
    Route("GET", "/2/groups/{name}/tags", _OPEN, reads.tags("group"), "Tags of a group"),
    Route("GET", "/2/jobs", _OPEN, reads.listing("job", "/2/jobs", "id"), "List jobs", _BULK),
    Route("GET", "/2/jobs/{job}", _OPEN, reads.job, "All about a job"),
    Route("DELETE", "/2/jobs/{job}", _WRITE, asked.cancel, "Cancel a job"),
    Route("GET", "/2/jobs/{job}/wait", _WRITE, reads.job_change,
          "Wait until a job is otherwise than it was, for ten seconds", has_body=True),
    Route("GET", "/2/tags", _OPEN, reads.tags("cluster"), "Tags of the cluster"),
    Route("GET", "/2/query/{resource}", _READ, asked.query, "Some fields of all objects", _FIELDS),
    Route("PUT", "/2/query/{resource}", _READ, asked.query, "Some fields of some objects", _FIELDS,
          has_body=True),
    Route("GET", "/2/query/{resource}/fields", _OPEN, asked.query_fields, "What fields there are",
          _FIELDS),
    Route("GET", "/2/filters", _OPEN, asked.filters, "List rules that new jobs are held to", _BULK),
    Route("POST", "/2/filters", _WRITE, asked.put_filter, "Make a rule", has_body=True),
    Route("GET", "/2/filters/{uuid}", _OPEN, asked.single_filter, "One rule"),
    Route("PUT", "/2/filters/{uuid}", _WRITE, asked.put_filter, "Put a rule in place of another",
          has_body=True),
    Route("DELETE", "/2/filters/{uuid}", _WRITE, asked.delete_filter, "Remove a rule"),
    Route("GET", "/2/events", _READ, title="What changes, as a stream of server-sent events",
          query=("kinds",), media=MEDIA),
    Route("GET", "/2/os", _OPEN, asked.systems, "Operating systems that can be installed",
          opcode="OP_OS_DIAGNOSE"),
)

# Submit what the catalogue has under another address, or not yet.
_SUBMISSIONS: dict[str, str] = {
    "GET /2/instances/{instance_name}/info": "OP_INSTANCE_QUERY_DATA",
    "POST /2/instances/{instance_name}/create": "OP_INSTANCE_CREATE",
    "POST /2/instances/{instance_name}/reinstall": "OP_INSTANCE_REINSTALL",
    "PUT /2/instances/{instance_name}/prepare-export": "OP_BACKUP_PREPARE",
    "PUT /2/nodes/{node_name}/role": "OP_NODE_SET_PARAMS",
    "PUT /2/redistribute-config": "OP_CLUSTER_REDIST_CONF",
    **{
        f"{method} /2/{kind}/{{name}}/tags": opcode
        for kind in ("groups", "instances", "networks", "nodes")
        for method, opcode in (("PUT", "OP_TAGS_SET"), ("DELETE", "OP_TAGS_DEL"))
    },
}
_LOOKS = frozenset({"GET /2/instances/{}/info"})  # open, although they submit a job
# fmt: on


def _all_routes() -> Iterator[Route]:
    yield from _READS
    known = {unnamed(f"{route.method} {route.path}") for route in _READS}
    catalogued = {entry.route: entry.opcode for entry in CATALOGUE.values() if entry.route}
    for route, opcode in (catalogued | _SUBMISSIONS).items():
        if (shape := unnamed(route)) not in known:
            known.add(shape)
            method, _, path = route.partition(" ")
            yield Route(method, path, _OPEN if shape in _LOOKS else _WRITE, opcode=opcode)


ROUTES: tuple[Route, ...] = tuple(_all_routes())


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._plain: dict[str, dict[str, Route]] = {}
        self._named: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        patterns: dict[str, dict[str, Route]] = {}
        for route in routes:
            is_named = "{" in route.path
            shapes = patterns if is_named else self._plain
            shapes.setdefault(unnamed(route.path), {})[route.method] = route
        self._named = [
            (next(iter(methods.values())).pattern, methods) for methods in patterns.values()
        ]

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """Return the route of a request, and what its path names.

        Raises:
            Refusal: there is no such path, or nothing of that method there.
        """
        path = path.removesuffix("/") or "/"  # some clients end a path with one
        methods = self._plain.get(path)
        if methods is None:
            methods = next((m for pattern, m in self._named if pattern.match(path)), None)
        if methods is None:
            raise refused(HTTPStatus.NOT_FOUND, f"There is nothing at {path}.")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None or not route.is_supported:
            told = f"Method {method} is unsupported for path {path}"
            allowed = ", ".join(sorted(each.method for each in methods.values()))
            raise refused(HTTPStatus.NOT_IMPLEMENTED, told, Allow=allowed)
        found = route.pattern.match(path)
        assert found is not None
        return route, found.groupdict()
