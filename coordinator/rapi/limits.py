"""How much one source may ask, so that it does not cost the others."""

import math
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from common.places import source_of
from coordinator.rapi.failures import Refusal, refused

MOST_SOURCES = 10_000
GUESSES, GUESSES_PER_S = 20.0, 0.5  # passwords that may be wrong, and how soon others may be
JOBS, JOBS_PER_S = 10.0, 0.5  # likewise of jobs that somebody has submitted, nobody knows who


class Bucket:
    """Fills with time; each request takes something out of it."""

    __slots__ = ("level", "since_s")

    def __init__(self, level: float, now_s: float) -> None:
        self.level, self.since_s = level, now_s

    def refill(self, size: float, per_s: float, now_s: float) -> None:
        self.level = min(size, self.level + (now_s - self.since_s) * per_s)
        self.since_s = now_s


class Limits:
    """Counts requests and wrong passwords by source.

    Args:
        per_s: requests a second that each may make in the long run; 0: as many as it likes.
        now_s: a clock.
    """

    def __init__(self, per_s: float, now_s: Callable[[], float]) -> None:
        self._per_s, self._now_s = per_s, now_s
        self._requests: OrderedDict[str, Bucket] = OrderedDict()
        self._guesses: OrderedDict[str, Bucket] = OrderedDict()
        self._jobs: OrderedDict[str, Bucket] = OrderedDict()

    def check(self, address: str) -> None:
        """Count a request.

        Raises:
            Refusal: that is one too many.
        """
        source = source_of(address)
        guesses = self._guesses.get(source)
        if guesses is not None:
            guesses.refill(GUESSES, GUESSES_PER_S, self._now_s())
            if guesses.level < 1:
                raise _too_many("wrong passwords", (1 - guesses.level) / GUESSES_PER_S)
        if self._per_s:
            self._take(self._requests, source, 2 * self._per_s, self._per_s, "requests")

    def check_job(self, address: str) -> None:
        """Count a job that somebody submits without having logged in: some only look.

        Raises:
            Refusal: that is one too many.
        """
        self._take(self._jobs, source_of(address), JOBS, JOBS_PER_S, "jobs of nobody")

    def _take(
        self, buckets: OrderedDict[str, Bucket], source: str, size: float, per_s: float, what: str
    ) -> None:
        bucket = _bucket(buckets, source, size, self._now_s())
        bucket.refill(size, per_s, self._now_s())
        if bucket.level < 1:
            raise _too_many(what, (1 - bucket.level) / per_s)
        bucket.level -= 1

    def failed(self, address: str) -> None:
        """Note a wrong password."""
        source, now_s = source_of(address), self._now_s()
        bucket = _bucket(self._guesses, source, GUESSES, now_s)
        bucket.refill(GUESSES, GUESSES_PER_S, now_s)
        bucket.level -= 1


def _bucket(buckets: OrderedDict[str, Bucket], source: str, size: float, now_s: float) -> Bucket:
    if source not in buckets:
        buckets[source] = Bucket(size, now_s)
        if len(buckets) > MOST_SOURCES:
            buckets.popitem(last=False)
    buckets.move_to_end(source)
    return buckets[source]


def _too_many(what: str, wait_s: float) -> Refusal:
    told = f"There are too many {what} from this address; wait a little."
    wait = str(max(1, math.ceil(wait_s)))
    return refused(HTTPStatus.TOO_MANY_REQUESTS, told, Retry_After=wait)
