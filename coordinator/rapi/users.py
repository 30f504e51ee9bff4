"""Who may use the REST interface: Ganeti's file of users, and what their passwords are compared by.

A line is ``NAME PASSWORD [OPTION,…]``. A password is as it is, or ``{cleartext}`` and the password,
or ``{HA1}`` and the MD5 of ``NAME:Ganeti Remote API:PASSWORD`` in hexadecimal.

Source: http/auth.py of Ganeti 3.0; H(A1) of RFC 2617, 3.2.2.2.
"""

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

REALM = "Ganeti Remote API"
READ, WRITE = "read", "write"


class Access(Enum):
    """What a request takes: nothing, or one of some options of a user."""

    OPEN = frozenset[str]()
    READ = frozenset({READ, WRITE})
    WRITE = frozenset({WRITE})


class User(NamedTuple):
    name: str
    password: str  # as it is in the file
    options: frozenset[str]

    def may(self, access: Access) -> bool:
        return access is Access.OPEN or not self.options.isdisjoint(access.value)

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
            case unknown:
                log.warning("the password of user %s is of no known kind: %s", self.name, unknown)
                return False


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


def credentials(header: str) -> tuple[str, str] | None:
    """Return the name and the password of an Authorization header; None if it has none."""
    scheme, _, coded = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(coded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None


class UsersFile:
    """The users of a file, read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._users: Mapping[str, User] = {}

    def find(self, name: str) -> User | None:
        """Return a user; the file as it is now counts."""
        self._refresh()
        return self._users.get(name)

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if seen == self._seen:
                return
            self._users = parse_users(self._path.read_text(encoding="utf-8"))
            log.info("%d users in %s", len(self._users), self._path)
        except (OSError, UnicodeError) as error:
            if self._users or self._seen is None:
                log.warning("nobody can log in: %s cannot be read: %s", self._path, error)
            self._users, seen = {}, (0, 0, 0)
        self._seen = seen


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
