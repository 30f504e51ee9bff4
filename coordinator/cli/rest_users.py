"""``gantry add-rest-user`` and its like: who may use the REST interface of this node."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.errors import Conflict, InvalidRequest, NotFound
from common.paths import Paths
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell

GROUP = "gantry-rapi"
ROLES = ("read-only", "operator", "owner", "admin")


def add(command: str, words: Sequence[str]) -> int:
    """Make a user, and print the token to log in with."""
    from common.durations import parse_duration
    from common.rest_users import CERTIFICATE, User, hashed, options_for, parse_users

    parser = Parser(
        command,
        "Let somebody use the REST interface of this node, and print a token, which is kept "
        "nowhere: send it as “Authorization: Bearer TOKEN”. Give the command on each node where "
        "gantry-rapi runs, or copy /etc/gantry/rapi-users.",
    )
    parser.add_argument("--role", choices=ROLES, default=ROLES[0], help=f"({ROLES[0]})")
    parser.add_argument(
        "--tag", action="append", default=[], help="of an owner: of the instances that are theirs"
    )
    parser.add_argument("--expires", metavar="DURATION", help="after 12h, 30d, … it is over")
    parser.add_argument(
        "--certificate", action="store_true", help="log in with a certificate in that name only"
    )
    add_json(parser)
    parser.add_argument("name", help="of the user")
    options = parser.parse_args(words)
    _check_name(options.name)
    if bool(options.tag) != (options.role == "owner"):
        raise InvalidRequest("An owner has at least one --tag, and nobody else has.")
    expires_s = None if options.expires is None else time.time() + parse_duration(options.expires)
    with _changing() as (text, store):
        if options.name in parse_users(text):
            raise Conflict(f"There is a user {options.name} already; remove it first.")
        secret = os.urandom(32).hex()
        password = CERTIFICATE if options.certificate else hashed(secret)
        granted = options_for(options.role, options.tag, expires_s)
        store(text + User(options.name, password, frozenset(granted)).line() + "\n")
    token = "" if options.certificate else f"{options.name}.{secret}"
    told = {"name": options.name, "role": options.role, "token": token or None}
    tell(options, told, token or f"{options.name} logs in with a certificate in that name.")
    return 0


def remove(command: str, words: Sequence[str]) -> int:
    """Take a user out of the file: passwords and tokens of that name open nothing any more."""
    from common.rest_users import parse_users, without

    parser = Parser(
        command,
        "Take away a user of the REST interface of this node. It counts at once.",
    )
    add_json(parser)
    parser.add_argument("name", help="of the user")
    options = parser.parse_args(words)
    with _changing() as (text, store):
        if options.name not in parse_users(text):
            raise NotFound(f"There is no user {options.name}.")
        store(without(text, options.name))
    tell(options, {"name": options.name}, f"{options.name} may use the interface no more.")
    return 0


def show(command: str, words: Sequence[str]) -> int:
    """List the users."""
    from common.rest_users import parse_users
    from coordinator.cli.table import table

    parser = Parser(command, "List the users of the REST interface of this node.")
    add_json(parser)
    options = parser.parse_args(words)
    users = [user for _, user in sorted(parse_users(_read(Paths().rapi_users)).items())]
    told = [
        {
            "name": user.name, "role": user.role, "tags": sorted(user.owns),
            "logs_in_by": user.logs_in_by, "expires": _moment(user.expires_s),
        }
        for user in users
    ]  # fmt: skip
    rows = [
        (user.name, user.role, ",".join(sorted(user.owns)) or "-", user.logs_in_by,
         _moment(user.expires_s) or "never")
        for user in users
    ]  # fmt: skip
    titles = ("Name", "Role", "Tags", "Logs_in_by", "Expires")
    tell(options, told, *table(titles, rows, right=[False] * len(titles)))
    return 0


def _moment(time_s: float) -> str | None:
    if time_s == float("inf"):
        return None
    if time_s == float("-inf"):
        return "over"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_s))


def _check_name(name: str) -> None:
    if not name or name.startswith("#") or any(c.isspace() or c == ":" for c in name):
        raise InvalidRequest(f"“{name}” is no name of a user: no blanks, no colon, no # before it.")
    if not name.isprintable():
        raise InvalidRequest("A name of a user has no control characters.")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except PermissionError as error:
        raise InvalidRequest(f"Only root may read {path}.") from error


@contextmanager
def _changing() -> Iterator[tuple[str, "Store"]]:
    """Have the file for oneself: what it holds, and what puts something else there."""
    import fcntl

    path = Paths().rapi_users
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (path.parent / ".rapi-users.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield _read(path), Store(path)
    except PermissionError as error:
        raise InvalidRequest(f"Only root may change {path}.") from error


class Store:
    """Replaces the file at once, for gantry-rapi to read and nobody else."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, text: str) -> None:
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.touch(mode=0o640)
        if (group := _group()) is not None:
            os.chown(new, -1, group)
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._path)


def _group() -> int | None:
    """Return the group of gantry-rapi, where we may give files to it."""
    import grp

    try:
        return grp.getgrnam(GROUP).gr_gid if os.geteuid() == 0 else None
    except KeyError:
        return None
