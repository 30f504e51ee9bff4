"""Whatever is sent to the REST interface of a cluster, the answer is no internal error."""

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from coordinator.rapi.routes import ROUTES, Route
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.rest import Rest, rest_of
from tests.support.seeds import seeds

REQUESTS = 150
NAMES = ("web1", "beta", "default", "alpha", "nobody", "1", "0", "999999999999999", "-", "..", "é")
WORDS = (
    "name", "os_type", "disks", "mode", "instances", "nics", "beparams", "hvparams", "__version__",
    "fields", "qfilter", "previous_job_info", "tags", "new_name", "amount", "priority", "action",
    "predicates", "reason", "depends", "comment", "dry_run", "OP_ID", "size", "live", "changes",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**70, 1.5, "", "web1", "create", "name", "\x00", "😀" * 50,
    [], {},
    ["=", "name", "web1"], [["jobid", [">", "id", 1]]], {"size": 64}, [{"size": "64"}], [[]],
)  # fmt: skip
ARGUMENTS = ("bulk", "dry-run", "force", "fields", "tag", "storage_type", "output_fields", "lock",
             "name", "mode", "static", "type", "reason", "kinds")  # fmt: skip
CALM = frozenset({"/2/events", "/2/jobs/{job}/wait"})  # they wait, and have tests of their own


def test_no_request_ends_in_an_internal_error(tmp_path: Path) -> None:
    for seed in seeds(1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        simulate(bombard(Random(seed), folder))


async def bombard(random: Random, folder: Path) -> None:
    routes = [route for route in ROUTES if route.path not in CALM]
    async with simulated_cluster(nodes=3, seed=1) as cluster, rest_of(cluster, folder) as rest:
        async with asyncio.timeout(3600):
            for _ in range(REQUESTS):
                route = random.choice(routes)
                path, body = address(route, random), body_for(random)
                answer = await rest.ask(route.method, path, body)
                told = f"{route.method} {path} {json.dumps(body)}: {answer.text!r}"
                assert answer.status != 500, told
                assert answer.status == 200 or answer.value["code"] == answer.status, told
            for _ in range(REQUESTS):
                await torn(rest, random)
            assert (await rest.ask("GET", "/2/nodes")).status == 200


def address(route: Route, random: Random) -> str:
    path = route.path
    for name in route.pattern.groupindex:
        path = path.replace(f"{{{name}}}", quote(random.choice(NAMES)))
    pairs = [
        f"{random.choice(ARGUMENTS)}={quote(random.choice(NAMES))}"
        for _ in range(random.randrange(4))
    ]
    return path + ("?" + "&".join(pairs) if pairs else "")


def body_for(random: Random) -> Any:
    if random.random() < 0.3:
        return random.choice(VALUES)
    return {random.choice(WORDS): random.choice(VALUES) for _ in range(random.randrange(5))}


async def torn(rest: Rest, random: Random) -> None:
    """Send something that is no request, or not a whole one."""
    whole = b"PUT /2/tags?tag=a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    data = bytearray(whole[: random.randrange(len(whole))])
    for _ in range(random.randrange(4)):
        if data:
            data[random.randrange(len(data))] = random.randrange(256)
    reader, writer = await asyncio.open_connection("127.0.0.1", rest.port)
    writer.write(bytes(data))
    writer.write_eof()
    assert b"HTTP/1.1 500" not in await reader.read()
    writer.close()
