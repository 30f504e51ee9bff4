"""As whom a guest's QEMU runs: a user id of its own, without a name, a right, or a file.

The id is also that of its only group. It is remembered in the guest's directory and is free
again when the guest is forgotten. Where noded is not root itself, as in some tests, guests run
as noded does.
"""

import os
import pwd
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from common.names import InstanceId
from noded.hypervisor.rules import Rules

ROOT = 0
NOBODY = 65534  # Debian's; for programs that are given nothing
_PROC = Path("/proc")


def find_user(rules: Rules, instance: InstanceId, taken: Iterable[int]) -> int:
    """Choose the user of a guest that starts now.

    Args:
        rules: from which range.
        instance: whose; the choice begins at a place that depends on it, so that two nodes
            on one machine hardly ever choose the same at the same moment.
        taken: users of other guests, running or not.

    Raises:
        NodeFailure: none is left.
    """
    if os.geteuid() != ROOT:
        return os.geteuid()
    busy = {*taken, *_users_of_processes()}
    user = choose_user(rules.users, instance, lambda user: user in busy or _has_name(user))
    if user is None:
        raise NodeFailure(
            f"All user ids from {rules.users[0]} to {rules.users[-1]} are in use on this node, "
            f"and every guest needs one; give more of them in {rules.source} (“users”).",
            path=rules.source,
        )
    return user


def choose_user(users: range, instance: InstanceId, is_taken: Callable[[int], bool]) -> int | None:
    """Return the first user that is free, beginning at one that depends on the guest."""
    begin = int(instance.replace("-", ""), 16) % len(users)
    turned = (users[(begin + step) % len(users)] for step in range(len(users)))
    return next((user for user in turned if not is_taken(user)), None)


def run_as(user: int, groups: tuple[int, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs ``argv`` as ``user``, with no right that is not everybody's.

    All is given up before the program is loaded: nothing of QEMU ever runs as root.
    """
    if user == os.geteuid():
        return argv
    grouping = (f"--groups={','.join(map(str, groups))}",) if groups else ("--clear-groups",)
    return (
        *("setpriv", f"--reuid={user}", f"--regid={user}", *grouping),
        *("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--", *argv),
    )


def _has_name(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _users_of_processes() -> set[int]:
    users = set()
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                users.add(entry.stat().st_uid)
    return users
