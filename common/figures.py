"""What a coordinator tells of its own doing, and of the cluster as a whole, in figures."""

from common.messages import Report
from common.timings import Distribution


class CandidateFigures(Report):
    """How far a master candidate's copy of the state is.

    Attributes:
        answers: whether the last attempt to store something there went well.
        behind: commits that it lacks; None if nobody knows.
        behind_s: how long it lacks any; 0 if it has all, None if it never had.
    """

    name: str
    answers: bool
    behind: int | None
    behind_s: float | None


class GroupFigures(Report):
    """What the allocator makes of a group of nodes.

    Attributes:
        score: of its balance, as hbal has it; the smaller the better.
        unsafe: nodes that lack the memory to take over from another (N+1).
        capacity: how many instances of the standard size would fit besides, counted up to a limit;
            None if nobody can tell.
    """

    name: str
    score: float
    unsafe: int
    capacity: int | None


class Outlook(Report):
    """What the allocator makes of the cluster.

    Attributes:
        age_s: how long ago that was.
        template: of the disks of the instances that are counted in ``capacity``.
    """

    groups: tuple[GroupFigures, ...] = ()
    template: str = ""
    age_s: float = 0.0


class Figures(Report):
    """All of it.

    Attributes:
        commits: how long changes took to be durable.
        is_writable: whether a majority of the candidates stores changes.
        lock_waits: how long jobs waited for locks.
        lock_waiters: jobs that wait for locks now.
        longest_lock_wait_s: of these the longest, so far.
        locks: that are held, by level.
        certificates: when they end, in seconds since 1970, by node; ``""`` is the authority's.
        outlook: None if it is not known yet.
    """

    commits: Distribution
    is_writable: bool
    candidates: tuple[CandidateFigures, ...]
    lock_waits: Distribution
    lock_waiters: int
    longest_lock_wait_s: float
    locks: dict[str, int]
    certificates: dict[str, float]
    outlook: Outlook | None = None
