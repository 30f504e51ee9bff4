"""What the coordinator is asked for each time: what has to be exact, or is seldom wanted."""

from http import HTTPStatus
from typing import Any

from common.errors import NodeFailure, NotFound
from coordinator.rapi.call import BAD, Call
from coordinator.rapi.failures import refused
from coordinator.rapi.fields import FILTER, INSTANCE
from coordinator.rapi.reads import ENDS, Sources

QUERIED = frozenset(
    {"export", "filter", "group", "instance", "job", "lock", "network", "node"}
)  # fmt: skip
OS_FIELDS = ("name", "variants")
OS_S = 60.0


async def console(call: Call, sources: Sources) -> Any:
    """Return how to reach the console of an instance that runs."""
    name, fields = call.named["instance_name"], ["console", "oper_state"]
    sources.copy.find(INSTANCE, name)
    ((found, is_running),) = await sources.luxi.call("QueryInstances", [name], fields, False)  # noqa: FBT003
    if not is_running:
        raise refused(HTTPStatus.SERVICE_UNAVAILABLE, "Instance console unavailable")
    return found


async def query(call: Call, sources: Sources) -> Any:
    """Return some fields of some objects."""
    what = _queried(call)
    given = call.members() if call.method == "PUT" else {}
    fields = given.get("fields")
    if fields is None:
        text = call.text("fields")
        if text is None:
            raise refused(BAD, "Missing 'fields' query argument")
        fields = _names(text)
    condition = given.get("qfilter", given.get("filter"))
    return await sources.luxi.call("Query", what, fields, condition)


async def query_fields(call: Call, sources: Sources) -> Any:
    """Return what fields there are."""
    text = call.text("fields")
    fields = None if text is None else _names(text)
    return await sources.luxi.call("QueryFields", _queried(call), fields)


def _queried(call: Call) -> str:
    what = call.named["resource"]
    if what not in QUERIED:
        there_are = ", ".join(sorted(QUERIED))
        raise NotFound(f"There is nothing called “{what}” to query; there are {there_are}.")
    return what


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


async def filters(call: Call, sources: Sources) -> Any:
    """Return the rules that new jobs are held to."""
    if call.flag("bulk"):
        rows = await sources.luxi.call("QueryFilters", None, FILTER)
        return [dict(zip(FILTER, row, strict=True)) for row in rows]
    rows = await sources.luxi.call("QueryFilters", None, ["uuid"])
    return [{"uuid": uuid, "uri": f"/2/filters/{uuid}"} for uuid in sorted(row[0] for row in rows)]


async def single_filter(call: Call, sources: Sources) -> Any:
    """Return one rule."""
    rows = await sources.luxi.call("QueryFilters", [call.named["uuid"]], FILTER)
    if not rows or rows[0] is None:
        raise NotFound(f"There is no filter rule {call.named['uuid']}.")
    return dict(zip(FILTER, rows[0], strict=True))


async def put_filter(call: Call, sources: Sources) -> Any:
    """Make a rule, or put another one in its place."""
    known = {"priority", "predicates", "action", "reason"}
    if strange := sorted(call.members().keys() - known):
        told = f"Invalid body parameters: filter rule doesn't support the parameter '{strange[0]}'"
        raise refused(BAD, told)
    return await sources.luxi.call(
        "ReplaceFilter",
        call.named.get("uuid"),
        call.member("priority", int, 0),
        call.member("predicates", list, []),
        call.members().get("action", "CONTINUE"),
        call.member("reason", list, []),
    )


async def delete_filter(call: Call, sources: Sources) -> Any:
    """Remove a rule."""
    return await sources.luxi.call("DeleteFilter", call.named["uuid"])


async def cancel(call: Call, sources: Sources) -> Any:
    """Have a job end."""
    return await sources.luxi.call("CancelJob", int(call.named["job"]))


async def systems(_: Call, sources: Sources) -> list[str]:
    """Return the operating systems that can be installed, with their variants."""
    wanted = {"OP_ID": "OP_OS_DIAGNOSE", "output_fields": OS_FIELDS, "names": []}
    number = await sources.luxi.call("SubmitJob", [wanted])
    fields = ["status", "opresult"]
    status, results = await _finished(number, fields, sources)
    if status != "success":
        raise NodeFailure(f"Job {number}, which was to look for operating systems, has failed.")
    return [each for name, variants in results[0] for each in _variants(name, variants)]


async def _finished(number: int, fields: list[str], sources: Sources) -> list[Any]:
    values: list[Any] | None = None
    while values is None or values[0] not in ENDS:
        told = await sources.luxi.call("WaitForJobChange", number, fields, values, None, OS_S)
        if told != "nochange":
            values = told[0]
    return values


def _variants(name: str, variants: list[str]) -> list[str]:
    return [f"{name}+{variant}" for variant in variants] if variants else [name]
