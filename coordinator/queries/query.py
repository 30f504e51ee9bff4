"""Answer a query: which rows, what has to be asked of the nodes, which values."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.queries.field import Field, Missing, Needs, unknown_field
from coordinator.queries.filter import Predicate, compile_filter, fields_of, names_asked
from coordinator.queries.live import Live
from coordinator.queries.source import Source
from coordinator.queries.subject import Subject, find_subject

AT_ONCE = 200  # rows to show, some 10 ms; then others get a turn: a long list holds up no job
TESTED_AT_ONCE = 20  # rows to filter: a few ms, even with a pattern made to be slow


async def query(what: str, fields: Sequence[str], qfilter: Any, source: Source) -> dict[str, Any]:
    """Return what LUXI's Query returns: the fields' definitions, and a row for each object.

    A row has ``[status, value]`` for each field, in the order asked; the value is None unless
    the status is 0 (see ``Missing``). A filter that only lists names is answered in its order.

    Raises:
        InvalidRequest: no such kind, no such filter.
        NotFound: the filter only lists names, and one does not exist.
    """
    subject = find_subject(what)
    columns = _columns(subject, fields)
    if subject.fetched is not None:
        source = await subject.fetched(source, qfilter)
    rows = await _rows(what, columns, qfilter, source)
    data = []
    for number, row in enumerate(rows, start=1):
        data.append([_entry(column.get(row)) for column in columns])
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return {"fields": [column.describe() for column in columns], "data": data}


def query_fields(what: str, names: Sequence[str] | None) -> dict[str, Any]:
    """Return what LUXI's QueryFields returns: definitions, of all fields or of those named."""
    subject = find_subject(what)
    columns = sorted(subject.fields.values(), key=lambda field: field.name)
    chosen = columns if names is None else _columns(subject, names)
    return {"fields": [column.describe() for column in chosen]}


async def _rows(
    what: str, columns: Sequence[Field[Any]], qfilter: Any, source: Source
) -> list[Any]:
    """Return the rows that fit, with all that the columns need."""
    subject, live = find_subject(what), Live()
    fits = compile_filter(qfilter, subject.fields)
    filtered = [subject.fields[name] for name in fields_of(qfilter)]
    to_filter, to_show = _needs(filtered), _needs(columns)
    names = names_asked(qfilter, subject.key)
    if names is not None and subject.named is not None:  # perhaps shortened: not for the filter
        rows = list(subject.named(source, live, list(dict.fromkeys(names))))
        await _ask(to_show, rows, live, source)
        return rows
    rows = list(_candidates(subject, qfilter, source, live))
    if to_filter <= {Needs.CONFIG}:  # then only nodes of rows that will be shown are asked
        rows = await _fitting(rows, fits)
        await _ask(to_show, rows, live, source)
        return rows
    await _ask(_needs([*filtered, *columns]), rows, live, source)
    return await _fitting(rows, fits)


async def _fitting(rows: Iterable[Any], fits: Predicate[Any]) -> list[Any]:
    chosen = []
    for number, row in enumerate(rows, start=1):
        if fits(row):
            chosen.append(row)
        if number % TESTED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return chosen


def _candidates(subject: Subject, qfilter: Any, source: Source, live: Live) -> Iterable[Any]:
    rows = subject.every(source, live)
    if "archived" in subject.fields and "archived" not in fields_of(qfilter):
        return (row for row in rows if not row.job.archived)
    return rows


def _needs(fields: Sequence[Field[Any]]) -> set[Needs]:
    worth_asking = {field.needs for field in fields if field.is_worth_asking}
    every = {field.needs for field in fields}
    return every if worth_asking - {Needs.CONFIG} else {Needs.CONFIG}


async def _ask(needs: set[Needs], rows: Sequence[Any], live: Live, source: Source) -> None:
    if rows and needs - {Needs.CONFIG}:
        nodes = {node.uuid: node for row in rows for node in row.nodes}
        await live.ask(needs, nodes.values(), source.state.config, source.asker)
        source.heard.keep_only(source.state.config.nodes)
        now_s = asyncio.get_running_loop().time()
        live.recall(source.heard, now_s)
        since = {node: source.silence.of(node) for node in nodes}
        live.silent_s = {n: now_s - since_s for n, since_s in since.items() if since_s is not None}


def _columns(subject: Subject, names: Any) -> list[Field[Any]]:
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest("The fields of a query are a list of names.")
    return [subject.fields.get(name) or unknown_field(name) for name in names]


def _entry(value: Any) -> tuple[int, Any]:
    if isinstance(value, Missing):
        return value.value, None
    return 0, value
