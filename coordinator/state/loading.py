"""Read the whole state from one candidate's replica, as a coordinator does when it starts."""

from dataclasses import dataclass

from common.errors import Conflict
from common.model.commit import Commit
from common.model.node import Node
from common.model.stamp import Stamp
from common.model.stored import Stored
from common.names import Serial
from common.noderpc.replica import Behind, Replica
from coordinator.state.rows import from_row
from coordinator.state.state import State, state_of

PAGE_ROWS = 2000
ATTEMPTS = 5
RECENT = 50  # commits asked for beside the state: 20 KiB each on a busy day, and somebody waits


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state, and the commits that led to it as far as they are kept, oldest first.

    With the commits, candidates that are a little behind need no whole copy.
    """

    state: State
    recent: tuple[Commit, ...] = ()


async def load(replica: Replica) -> Loaded:
    """Read everything, page by page, all of one and the same stamp.

    Raises:
        Conflict: the state changes all the time; another coordinator is at work.
        InvalidRequest: a row is damaged or of a newer version; names it.
        NodeFailure, Unreachable: the replica cannot be read.
    """
    for _ in range(ATTEMPTS):
        found = await _read_rows(replica)
        if found is None:
            continue
        items, stamp = found
        return Loaded(state_of(items, stamp), await _read_recent(replica, stamp))
    raise Conflict("The state changes while it is read; another coordinator is at work.")


async def load_nodes(replica: Replica) -> list[Node]:
    """Read only which nodes the state has; they are few, so one page holds them all.

    Raises:
        InvalidRequest: a row is damaged or of a newer version; names it.
        NodeFailure, Unreachable: the replica cannot be read.
    """
    nodes: list[Node] = []
    last, more = ("node", ""), True
    while more:
        page = await replica.read(after=last, limit=PAGE_ROWS)
        mine = [row for row in page.rows if row.kind == "node"]
        nodes += [item for item in map(from_row, mine) if isinstance(item, Node)]
        more = page.more and len(mine) == len(page.rows)
        last = ("node", mine[-1].id) if mine else last
    return nodes


async def _read_rows(replica: Replica) -> tuple[list[Stored], Stamp] | None:
    """Return all objects; None if the state changed in between."""
    page = await replica.read(after=None, limit=PAGE_ROWS)
    stamp = page.stamp
    items = [from_row(row) for row in page.rows]
    while page.more:
        last = page.rows[-1]
        page = await replica.read(after=(last.kind, last.id), limit=PAGE_ROWS)
        if page.stamp != stamp:
            return None
        items += [from_row(row) for row in page.rows]
    return items, stamp


async def _read_recent(replica: Replica, stamp: Stamp) -> tuple[Commit, ...]:
    recent: list[Commit] = []
    serial = max(stamp.serial - RECENT, 0)
    try:
        while serial < stamp.serial:
            recent += await replica.commits_after(serial=Serial(serial))
            serial = recent[-1].serial if recent else stamp.serial
    except Behind:
        return ()  # fewer are kept, as after a whole copy; they are a convenience only
    # Only what leads to this very state is of use.
    return tuple(recent) if recent and recent[-1].stamp == stamp else ()
