"""What lists show, kept here as text; the coordinator tells what changes.

Answering costs it nothing, and a list of ten thousand is joined once for all who ask for it.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from common.errors import GntError, NotFound
from common.messages import Report, to_json
from common.natural import natural_key
from coordinator.rapi.conditions import version_of
from coordinator.rapi.fields import BRIEF, FIELDS, JOB
from coordinator.rapi.luxi import Luxi

RETRY_S = 0.5
WAIT_S = 10.0  # for news
SLACK_S = 15.0

log = logging.getLogger(__name__)


class _Head(Report):
    """What this copy itself has to know of a row."""

    id: Any = None
    name: str | None = None
    uuid: str = ""
    serial_no: int = 0


class _News(Report):
    rows: list[tuple[str, Any, Raw]]
    more: bool
    age: float | None = None


class Row:
    """One object; ``text`` is the JSON object that tells all, ``brief`` what lists have of it."""

    __slots__ = ("brief", "key", "name", "rank", "serial", "text")

    def __init__(self, key: Any, text: bytes, brief: bytes, head: _Head) -> None:
        self.key, self.text, self.brief = key, text, brief
        self.name = str(key if head.name is None else head.name)
        self.rank: Any = key if head.name is None else natural_key(self.name)
        self.serial = head.serial_no

    def values(self) -> Any:
        return msgspec.json.decode(self.text)

    @property
    def version(self) -> str:
        return version_of(self.serial, self.text)


class Table:
    """The objects of a kind, in the order of lists."""

    def __init__(self) -> None:
        self.rows: dict[Any, Row] = {}
        self.revision = secrets.randbits(40)  # of no other run
        self._names: dict[str, Any] = {}
        self._order: list[Any] | None = None  # keys
        self._joined: bytes | None = None

    def put(self, row: Row) -> None:
        old = self.rows.get(row.key)
        if old is None or old.name != row.name:
            self.remove(row.key)
            self._order = None
        self.rows[row.key] = row
        self._names[row.name] = row.key
        self._joined = None
        self.revision += 1

    def remove(self, key: Any) -> None:
        if (old := self.rows.pop(key, None)) is not None:
            if self._names.get(old.name) == key:
                del self._names[old.name]
            self._order = self._joined = None
            self.revision += 1

    def find(self, name: str) -> Row | None:
        """Return the row of a name, a number or a UUID."""
        return self.rows.get(self._names.get(name, name))

    def in_order(self) -> list[Row]:
        if self._order is None:
            self._order = sorted(self.rows, key=lambda key: self.rows[key].rank)
        return [self.rows[key] for key in self._order]

    def joined(self) -> bytes:
        """Return the JSON array of all rows in brief."""
        if self._joined is None:
            self._joined = b"[%b]" % b",".join([row.brief for row in self.in_order()])
        return self._joined


class Copy:
    """All tables; whole as long as the coordinator is heard from.

    Args:
        luxi: reaches the coordinator.
        on_change: called with the kind, the key, and the row or None, when one changes.
        on_reset: called when anything may have changed, as it was away.
    """

    def __init__(
        self,
        luxi: Luxi,
        on_change: Callable[[str, Any, Row | None], None] = lambda *_: None,
        on_reset: Callable[[], None] = lambda: None,
    ) -> None:
        self._luxi, self._on_change, self._on_reset = luxi, on_change, on_reset
        self.tables: Mapping[str, Table] = {kind: Table() for kind in FIELDS}
        self.trouble: GntError | None = None  # why it is not whole
        self.is_whole = False
        self._heard_s = 0.0  # when nodes were looked at, by the loop's clock
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the coordinator, whichever runs here, until cancelled."""
        while True:
            try:
                await self._follow()
            except GntError as error:
                if self.is_whole or self.trouble is None:
                    log.info("the copy is not kept up to date: %s", error)
                self.is_whole, self.trouble = False, error
                self._tell()
                await asyncio.sleep(RETRY_S)

    def find(self, kind: str, name: str) -> Row:
        """Return an object by name or UUID.

        Raises:
            NotFound: there is none.
        """
        if (row := self.tables[kind].find(name)) is None:
            raise NotFound(f"There is no {kind} “{name}”.")
        return row

    def job(self, number: int) -> Row | None:
        """Return a job that is not archived."""
        return self.tables[JOB].rows.get(number)

    def has_seen_end(self, number: int) -> bool:
        """Tell whether a job that has ended is known as such, or archived."""
        rows = self.tables[JOB].rows
        if (row := rows.get(number)) is not None:
            return row.values()["end_ts"] is not None
        return number <= max(rows, default=0)

    @property
    def age_s(self) -> float:
        """How long ago the nodes were looked at."""
        return asyncio.get_running_loop().time() - self._heard_s

    async def changed(self) -> None:
        """Return when anything has changed after this call."""
        await self._changed.wait()

    async def _follow(self) -> None:
        number = await self._luxi.call("Subscribe", FIELDS)
        fresh: dict[str, Table] | None = {kind: Table() for kind in FIELDS}
        while True:
            news: _News = await self._luxi.call_for(
                _News, "NextChanges", number, WAIT_S, answer_s=WAIT_S + SLACK_S
            )
            if news.age is not None:
                self._heard_s = asyncio.get_running_loop().time() - news.age
            self._take_in(self.tables if fresh is None else fresh, news.rows, tell=fresh is None)
            if fresh is not None and not news.more:
                self.tables, fresh = fresh, None
                self.is_whole, self.trouble = True, None
                self._on_reset()
                self._tell()
                log.info("the copy is whole")

    def _take_in(
        self, tables: Mapping[str, Table], rows: Iterable[tuple[str, Any, Raw]], *, tell: bool
    ) -> None:
        for kind, key, text in rows:
            row = None if bytes(text) == b"null" else row_of(kind, key, bytes(text))
            if row is None:
                tables[kind].remove(key)
            else:
                tables[kind].put(row)
            if tell:
                self._on_change(kind, key, row)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def row_of(kind: str, key: Any, text: bytes) -> Row:
    """Return the row of an object as the coordinator tells it."""
    head = msgspec.json.decode(text, type=_Head)
    brief = text
    if kind in BRIEF:
        values = msgspec.json.decode(text)
        brief = to_json({name: values[name] for name in BRIEF[kind]})
    return Row(key, text, brief, head)
