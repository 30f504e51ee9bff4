"""The newest commits, kept in memory for replicas that fell a little behind."""

from collections.abc import Iterable

from common.model.commit import Commit
from common.model.stamp import Stamp
from common.names import Serial

KEPT_BYTES = 32 * 2**20
HELD_BYTES = 256 * 2**20  # at most, while replicas are copied to that will need them
SENT_BYTES = 2 * 2**20  # in one call, unless a single commit is larger


class Ring:
    """Commits in a row, up to ``newest``; the oldest go when they take too much room."""

    def __init__(self, newest: Stamp, recent: Iterable[Commit] = ()) -> None:
        """Begin at ``newest``; ``recent`` are commits that led there, oldest first."""
        self.newest = newest
        self._commits: dict[int, Commit] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._holds: dict[object, int] = {}
        for commit in recent:
            self._keep(commit)

    def add(self, commit: Commit) -> None:
        self._keep(commit)
        self.newest = commit.stamp

    def after(self, serial: int) -> tuple[Commit, ...] | None:
        """Return commits from ``serial + 1`` on, as many as go in one call.

        None when the first of them is not kept, or ``serial`` is not before the newest.
        """
        if serial + 1 not in self._commits:
            return None
        chosen: list[Commit] = []
        room = SENT_BYTES
        for number in range(serial + 1, self.newest.serial + 1):
            room -= self._sizes[number]
            if chosen and room < 0:
                break
            chosen.append(self._commits[number])
        return tuple(chosen)

    def hold(self, who: object, serial: int) -> None:
        """Keep all commits after ``serial`` until ``who`` holds another or lets go.

        A whole copy takes its time, in which commits go on; without this those that follow the copy
        could be gone when it is done, and it would be made again, and again.
        """
        self._holds[who] = serial

    def reached(self, who: object, serial: int) -> None:
        """Hear how far ``who``, if it holds anything, has come; at the newest it lets go."""
        if who in self._holds:
            self._holds[who] = serial
            if serial >= self.newest.serial:
                self.let_go(who)

    def let_go(self, who: object) -> None:
        """Hold nothing for ``who`` any more."""
        self._holds.pop(who, None)
        self._shrink()

    def _keep(self, commit: Commit) -> None:
        self._commits[commit.serial] = commit
        self._sizes[commit.serial] = size = size_of(commit)
        self._bytes += size
        self._shrink()

    def _shrink(self) -> None:
        while self._bytes > KEPT_BYTES and len(self._commits) > 1:
            oldest = Serial(next(iter(self._commits)))
            is_held = any(oldest > serial for serial in self._holds.values())
            if is_held and self._bytes <= HELD_BYTES:
                return
            del self._commits[oldest]
            self._bytes -= self._sizes.pop(oldest)


def size_of(commit: Commit) -> int:
    """Return about how many bytes a commit takes."""
    bodies = sum(memoryview(change.body).nbytes for change in commit.changes)
    return bodies + 100 * len(commit.changes) + 100
