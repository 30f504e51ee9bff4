"""Who may use the REST interface: Ganeti's file of users, and more that its lines may say.

A line is ``NAME PASSWORD [OPTION,…]``. A password is as it is, ``{cleartext}`` and the password,
``{HA1}`` and the MD5 of ``NAME:Ganeti Remote API:PASSWORD``; ours are ``{SHA256}`` and the sum of a
token, and ``{CERTIFICATE}`` for who shows a certificate in that name. Options are Ganeti's ``read``
and ``write``; ours are ``operator``, ``owner=TAG`` and ``expires=TIME``.

Source: http/auth.py of Ganeti 3.0; H(A1) of RFC 2617, 3.2.2.2.
"""

import hashlib
import hmac
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from math import inf
from typing import NamedTuple

from common.errors import Conflict, InvalidRequest, NotFound

log = logging.getLogger(__name__)

LARGEST_BYTES = 1 << 20  # some 10,000 users

REALM = "Ganeti Remote API"
READ, OPERATOR, WRITE = "read", "operator", "write"
CERTIFICATE = "{CERTIFICATE}"
_SHA256 = "{SHA256}"
_OWNER, _EXPIRES = "owner=", "expires="


class User(NamedTuple):
    """One line of the file."""

    name: str
    password: str  # as it is in the file
    options: frozenset[str] = frozenset()

    @property
    def owns(self) -> frozenset[str]:
        """Tags of the instances that are the user's own."""
        return frozenset(self._values(_OWNER))

    @property
    def expires_s(self) -> float:
        """Until when the line counts; what is no time is over."""
        return min(map(_moment, self._values(_EXPIRES)), default=inf)

    @property
    def role(self) -> str:
        """What the user may, in one word."""
        roles = {WRITE: "admin", OPERATOR: "operator", READ: "read-only"}
        owner = "owner" if self.owns else "nobody"
        return next((role for option, role in roles.items() if option in self.options), owner)

    @property
    def logs_in_by(self) -> str:
        kinds = {"{HA1}": "password", _SHA256: "token", CERTIFICATE: "certificate"}
        return kinds.get(self.password.partition("}")[0].upper() + "}", "password")

    def has_password(self, given: str) -> bool:
        scheme, closed, rest = self.password.partition("}")
        if not scheme.startswith("{"):
            return _equal(self.password, given)
        match f"{scheme}{closed}".upper():
            case "{CLEARTEXT}":
                return _equal(rest, given)
            case "{HA1}":
                text = f"{self.name}:{REALM}:{given}".encode()
                digest = hashlib.md5(text, usedforsecurity=False).hexdigest()
                return _equal(rest.lower(), digest)
            case "{SHA256}":
                return _equal(f"{_SHA256}{rest.lower()}", hashed(given))
            case "{CERTIFICATE}":
                return False
            case unknown:
                log.warning("the password of user %s is of no known kind: %s", self.name, unknown)
                return False

    def _values(self, prefix: str) -> Iterable[str]:
        return (each.removeprefix(prefix) for each in self.options if each.startswith(prefix))

    def line(self) -> str:
        """Return the line of the file."""
        return f"{self.name} {self.password} {','.join(sorted(self.options))}".rstrip()


def hashed(token: str) -> str:
    """Return how a token is kept: it is long and of chance, so that a plain sum will do."""
    return _SHA256 + hashlib.sha256(token.encode()).hexdigest()


def options_for(role: str, tags: Iterable[str] = (), expires_s: float | None = None) -> set[str]:
    """Return the options of a role, as ``User.role`` tells it."""
    options = {
        "read-only": {READ}, "operator": {OPERATOR}, "admin": {WRITE},
        "owner": {f"{_OWNER}{tag}" for tag in tags},
    }[role]  # fmt: skip
    if expires_s is not None:
        moment = datetime.fromtimestamp(expires_s, UTC)
        options = options | {f"{_EXPIRES}{moment:%Y-%m-%dT%H:%M:%SZ}"}
    return options


def parse_users(text: str) -> dict[str, User]:
    """Read a file of users; lines that are none are told of in the log and left out."""
    users = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split(None, 2)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 2:
            log.warning("line %d of the users is left out: it has no password", number)
            continue
        options = words[2].split(",") if len(words) > 2 else ()
        users[words[0]] = User(words[0], words[1], frozenset(each.strip() for each in options))
    return users


def without(text: str, name: str) -> str:
    """Return a file of users without those lines that are of a name."""
    kept = (line for line in text.splitlines() if (line.split(None, 1) or [""])[0] != name)
    return "".join(f"{line}\n" for line in kept)


def changed(text: str, add: str = "", remove: str = "") -> str:
    """Return a file of users with a line more, or without those of a name.

    Raises:
        InvalidRequest: that is no line, or there would be too many.
        Conflict: there is a user of this name.
        NotFound: there is none.
    """
    present = parse_users(text)
    if remove:
        if remove not in present:
            raise NotFound(f"There is no user {remove}.")
        text = without(text, remove)
    if add:
        user = next(iter(parse_users(add).values()), None)
        if user is None or add != user.line() or not add.isprintable():
            raise InvalidRequest("That is no line of a user: a name, a password and options.")
        if user.name in parse_users(text):
            raise Conflict(f"There is a user {user.name} already; remove it first.")
        text += f"{add}\n"
    if len(text.encode()) > LARGEST_BYTES:
        raise InvalidRequest("There are too many users of the REST interface; remove some.")
    return text


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        log.warning("“%s” is no time at which something expires", text)
        return -inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
