"""Orders expire: one that arrives after its caller gave up is refused, never carried out.

However long a network or a queue held it, an order can then do nothing that its caller does not
count with: a late "have it gone" would kill a guest that has come back since.
"""

import secrets
from collections.abc import Callable

from common.errors import Expired
from common.rpc.clock import Reading


class OwnClock:
    """The clock of one life of noded, in which its orders say until when they are good."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """Read ``seconds``, a clock that is never set and only goes forward."""
        self._seconds = seconds
        self._process = secrets.token_hex(8)

    def read(self) -> Reading:
        return Reading(self._process, self._seconds())

    def check(self, good_until: Reading | None, what: str) -> None:
        """Refuse what is not good any more, or never was.

        Raises:
            Expired: says why; the caller may ask again after it has seen our clock.
        """
        if good_until is None:
            raise Expired(f"{what} does not say until when it is good, so it is not carried out.")
        now = self.read()
        if good_until.process != now.process:
            raise Expired(
                f"{what} was meant for a noded that has ended since; it is not carried out."
            )
        if (late_s := now.at_s - good_until.at_s) > 0:
            raise Expired(
                f"{what} comes {late_s:.1f} s after its caller gave up; it is not carried out."
            )
