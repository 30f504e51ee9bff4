"""Ask the coordinator what it knows of some objects, and read its answer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from common.errors import GntError, InvalidRequest
from common.luxi.client import Client
from coordinator.cli.connection import connect
from coordinator.cli.last_known import FIELD, LastKnown, read_last_known, with_last_known

Definition = dict[str, str]
Entry = tuple[int, Any]


class Answer(NamedTuple):
    """The fields that were asked for, and for each object a row of ``(status, value)``.

    ``last`` has for each row what its node told before, if it does not answer.
    """

    fields: list[Definition]
    rows: list[list[Entry]]
    last: list[LastKnown | None]

    def as_objects(self) -> list[dict[str, Any]]:
        """Return one dict a row; what has no value is None, and is in ``last_known`` perhaps."""
        names = [field["name"] for field in self.fields]
        objects: list[dict[str, Any]] = []
        for row, last in zip(self.rows, self.last, strict=True):
            values = (None if status else value for status, value in row)
            told = dict(zip(names, values, strict=True))
            objects.append(told if last is None else told | {FIELD: last.as_object()})
        return objects


def query(what: str, fields: Sequence[str], condition: Any) -> Answer:
    """Connect, and ask for ``fields`` of the objects that fit a filter.

    Raises:
        GntError: as the coordinator raised it, or its answer is of another form.
    """
    with connect() as client:
        return ask(client, what, fields, condition)


def ask(client: Client, what: str, fields: Sequence[str], condition: Any) -> Answer:
    """Do the same over a connection that there is."""
    asked = with_last_known(fields, what)
    told = client.call("Query", what, asked, condition)
    try:
        rows = [[(int(status), value) for status, value in row] for row in told["data"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error
    definitions = read_definitions(told)
    if any(len(row) != len(asked) for row in rows) or len(definitions) != len(asked):
        raise _unreadable()
    if FIELD not in asked:
        return Answer(definitions, rows, [None] * len(rows))
    column, width = asked.index(FIELD), len(fields)
    last = [read_last_known(row[column][1]) for row in rows]
    return Answer(definitions[:width], [row[:width] for row in rows], last)


def read_definitions(told: Any) -> list[Definition]:
    """Read what a query, or a question about fields, told of each field.

    Raises:
        InvalidRequest: it is of another form.
    """
    try:
        return [
            {key: str(field[key]) for key in ("name", "title", "kind", "doc")}
            for field in told["fields"]
        ]
    except (KeyError, TypeError) as error:
        raise _unreadable() from error


def _unreadable() -> GntError:
    return InvalidRequest(
        "The coordinator's answer is not of the form agreed on; are both of the same version?"
    )
