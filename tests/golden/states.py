"""States as files: all rows of a replica, and of its archive, one a line."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from common.messages import Order, to_json
from common.model.commit import ARCHIVE
from common.model.stamp import Stamp
from common.names import JobId
from common.noderpc.replica import Row
from noded.replica.store import ReplicaFile

DIRECTORY = Path(__file__).parent / "states"
MANY = 10_000


class WrittenState(Order):
    """What one replica held at one moment, and how that came about."""

    told: str
    stamp: Stamp
    rows: tuple[Row, ...]  # archived jobs are of the kind ``ARCHIVE``

    @property
    def loaded(self) -> tuple[Row, ...]:
        """The rows that whoever becomes master loads."""
        return tuple(row for row in self.rows if row.kind != ARCHIVE)

    @property
    def archived(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.kind == ARCHIVE)


def versions() -> list[str]:
    """Return the names of the versions that have left states, oldest first."""
    return sorted((each.name for each in DIRECTORY.iterdir() if each.is_dir()), key=int)


def written_states(version: str, file: str) -> Iterator[WrittenState]:
    """Yield the states in a file."""
    text = (DIRECTORY / version / file).read_bytes()
    yield from msgspec.json.decode(text, type=tuple[WrittenState, ...])


def write_states(path: Path, states: list[WrittenState]) -> None:
    """Write states in canonical JSON, a row a line, so that versions can be compared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"[\n" + b",\n".join(_text(state) for state in states) + b"\n]\n")


def _text(state: WrittenState) -> bytes:
    rows = b",\n".join(to_json(row) for row in state.rows)
    head = b'{"told":%b,"stamp":%b,"rows":[\n' % (to_json(state.told), to_json(state.stamp))
    return head + rows + b"\n]}"


def read_replica(told: str, path: Path) -> WrittenState:
    """Take in what the replica at ``path`` holds."""
    replica = ReplicaFile(path)
    page = replica.read(None, MANY)
    archive = replica.read_archive(JobId(0), JobId(2**50), newest_first=False, limit=MANY)
    replica.close()
    assert not page.more
    assert not archive.more
    rows = (*page.rows, *archive.rows)
    return WrittenState(told=told, stamp=page.stamp, rows=tuple(map(_without_secret, rows)))


def _without_secret(row: Row) -> Row:
    """Leave out keys, which are nobody's business, and differ each time."""
    if row.kind != "secret":
        return row
    body = msgspec.json.decode(row.body) | {"value": "a secret"}
    return msgspec.structs.replace(row, body=msgspec.Raw(to_json(body)))
