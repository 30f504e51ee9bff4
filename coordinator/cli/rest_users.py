"""``gantry add-rest-user`` and its like: who may use the REST interface of the cluster."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.errors import InvalidRequest, NotFound
from common.paths import Paths
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell

ROLES = ("read-only", "operator", "owner", "admin")
CLUSTER = "cluster"


def add(command: str, words: Sequence[str]) -> int:
    """Make a user, and print the token to log in with."""
    from common.durations import parse_duration
    from common.rest_users import CERTIFICATE, User, hashed, options_for

    parser = Parser(
        command,
        "Let somebody use the REST interface of the cluster, and print a token, which is kept "
        "nowhere: send it as “Authorization: Bearer TOKEN”. It counts on every master candidate.",
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
    secret = os.urandom(32).hex()
    password = CERTIFICATE if options.certificate else hashed(secret)
    granted = frozenset(options_for(options.role, options.tag, expires_s))
    with connect() as client:
        client.call("ChangeRestUsers", User(options.name, password, granted).line(), "")
    token = "" if options.certificate else f"{options.name}.{secret}"
    told = {"name": options.name, "role": options.role, "token": token or None}
    tell(options, told, token or f"{options.name} logs in with a certificate in that name.")
    return 0


def remove(command: str, words: Sequence[str]) -> int:
    """Take a user away: passwords and tokens of that name open nothing any more."""
    from common.rest_users import parse_users

    parser = Parser(
        command,
        "Take away a user of the REST interface of the cluster. It counts within a second.",
    )
    add_json(parser)
    parser.add_argument("name", help="of the user")
    options = parser.parse_args(words)
    own = Paths().rapi_users
    with connect() as client:
        try:
            client.call("ChangeRestUsers", "", options.name)
        except NotFound as error:
            if options.name not in parse_users(_read(own)):
                raise
            raise NotFound(
                f"The cluster has no user {options.name}, but {own} of this node has: take the "
                "line out there."
            ) from error
    tell(options, {"name": options.name}, f"{options.name} may use the interface no more.")
    return 0


def show(command: str, words: Sequence[str]) -> int:
    """List the users: the cluster's, and those in this node's own file."""
    from common.rest_users import parse_users
    from coordinator.cli.table import table

    parser = Parser(
        command, "List the users of the REST interface, and those that this node alone has."
    )
    add_json(parser)
    options = parser.parse_args(words)
    own = Paths().rapi_users
    with connect() as client:
        kept = {CLUSTER: client.call("RestUsers"), str(own): _read(own)}
    told: list[dict[str, Any]] = [
        {
            "name": user.name, "role": user.role, "tags": sorted(user.owns),
            "logs_in_by": user.logs_in_by, "expires": _moment(user.expires_s), "kept_in": where,
        }
        for where, text in kept.items()
        for _, user in sorted(parse_users(text).items())
    ]  # fmt: skip
    rows = [
        (each["name"], each["role"], ",".join(each["tags"]) or "-", each["logs_in_by"],
         each["expires"] or "never", each["kept_in"])
        for each in told
    ]  # fmt: skip
    titles = ("Name", "Role", "Tags", "Logs_in_by", "Expires", "Kept_in")
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
