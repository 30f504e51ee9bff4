"""Who asks: by a password, a token or a certificate, of those in the file of users."""

import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any

from common.rest_users import CERTIFICATE, User, parse_users

log = logging.getLogger(__name__)


class Access(Enum):
    """What a request takes of who makes it; ``rights.py`` says who has it."""

    OPEN = auto()  # nothing, unless reading takes a user, too
    READ = auto()
    WRITE = auto()


class Users:
    """Those of several files: the operator's own for this node, and the cluster's."""

    def __init__(self, *files: "UsersFile") -> None:
        self._files = files

    def log_in(self, header: str) -> User | None:
        """Return the user of an Authorization header; None if that opens nothing."""
        return next(filter(None, (file.log_in(header) for file in self._files)), None)

    def certified(self, certificate: Mapping[str, Any] | None) -> User | None:
        """Return the user of a certificate that was checked; None if there is none."""
        return next(filter(None, (file.certified(certificate) for file in self._files)), None)


class UsersFile:
    """The users of a file, read again when it has changed."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path, self._now = path, now
        self._seen: tuple[int, int, int] | None = None
        self._users: Mapping[str, User] = {}

    def log_in(self, header: str) -> User | None:
        """Return the user of an Authorization header; None if that opens nothing."""
        found = credentials(header)
        user = self.find(found[0]) if found else None
        return user if found and user and user.has_password(found[1]) else None

    def certified(self, certificate: Mapping[str, Any] | None) -> User | None:
        """Return the user of a certificate that was checked; None if there is none."""
        name = common_name(certificate)
        user = self.find(name) if name else None
        return user if user and user.password.upper() == CERTIFICATE else None

    def find(self, name: str) -> User | None:
        """Return a user whose time is not over; the file as it is now counts."""
        self._refresh()
        user = self._users.get(name)
        return user if user and self._now() < user.expires_s else None

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if seen == self._seen:
                return
            self._users = parse_users(self._path.read_text(encoding="utf-8"))
            log.info("%d users in %s", len(self._users), self._path)
        except FileNotFoundError:
            self._users, seen = {}, (0, 0, 0)
        except (OSError, UnicodeError) as error:
            if self._users or self._seen is None:
                log.warning("nobody can log in: %s cannot be read: %s", self._path, error)
            self._users, seen = {}, (0, 0, 0)
        self._seen = seen


def credentials(header: str) -> tuple[str, str] | None:
    """Return the name and the password of an Authorization header; None if it has none.

    A bearer's token is both, with a dot between them.
    """
    scheme, _, coded = header.strip().partition(" ")
    if scheme.lower() == "bearer":
        name, dot, token = coded.strip().rpartition(".")
        return (name, token) if dot else None
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(coded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """Return the name that a certificate is in, as Python's ``ssl`` tells it."""
    for part in (certificate or {}).get("subject", ()):
        for kind, value in part:
            if kind == "commonName":
                return str(value)
    return None
