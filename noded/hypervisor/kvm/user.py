"""As whom a guest's QEMU runs: a user id of its own, without a name, a right, or a file.

The id is also that of its only group. It is remembered in the guest's directory and is free
again when the guest is forgotten. Where noded is not root itself, as in some tests, guests run
as noded does.
"""

import itertools
import os
import pwd
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from common.model.kvm_checks import POOL
from common.model.uid_pool import format_uid_pool, uids_within
from common.names import InstanceId
from common.noderpc.instances import GuestSpec
from noded.hypervisor.rules import Rules
from noded.operating_systems.sandbox import UNTRUSTED

ROOT = 0
NOBODY = 65534  # Debian's; for programs that are given nothing
NEVER = frozenset({NOBODY, UNTRUSTED})  # whose programs come and go, and are no guests
_PROC = Path("/proc")


def users_of(guest: GuestSpec, parameters: KvmParameters, rules: Rules) -> tuple[range, ...]:
    """Return who may run a guest: of the node's users those that the cluster's pool has, if told.

    Raises:
        NodeFailure: nobody.
    """
    if parameters.security_model != POOL:
        return (rules.users,)
    if not guest.users:
        raise NodeFailure(
            "Its security_model is “pool”, and the cluster has no pool of user ids; “gnt-cluster "
            "modify --uid-pool=FIRST-LAST” gives it one."
        )
    users = uids_within(guest.users, rules.users)
    if not users:
        raise NodeFailure(
            f"None of the user ids in the cluster's pool ({format_uid_pool(guest.users)}) is for "
            f"guests on this node, whose root allows {rules.users[0]} to {rules.users[-1]} "
            f"(“users” in {rules.source}).",
            path=rules.source,
        )
    return users


def find_user(
    users: tuple[range, ...], rules: Rules, instance: InstanceId, taken: Iterable[int]
) -> int:
    """Choose the user of a guest that starts now.

    Args:
        users: among whom.
        rules: of this node.
        instance: whose; the choice begins at a place that depends on it, so that two nodes
            on one machine hardly ever choose the same at the same moment.
        taken: users of other guests, running or not.

    Raises:
        NodeFailure: none is left.
    """
    if os.geteuid() != ROOT:
        return os.geteuid()
    busy = {*taken, *_users_of_processes(), *NEVER}
    user = choose_user(users, instance, lambda user: user in busy or _has_name(user))
    if user is None:
        raise NodeFailure(
            f"All user ids {_spoken(users)} are in use on this node, and every guest needs one; "
            f"give more of them in {rules.source} (“users”){_and_pool(users, rules)}.",
            path=rules.source,
        )
    return user


def choose_user(
    users: tuple[range, ...], instance: InstanceId, is_taken: Callable[[int], bool]
) -> int | None:
    """Return the first user that is free, beginning at one that depends on the guest."""
    begin = int(instance.replace("-", ""), 16) % sum(map(len, users))
    turned = itertools.chain(_from(users, begin), _until(users, begin))
    return next((user for user in turned if not is_taken(user)), None)


def _from(users: tuple[range, ...], begin: int) -> Iterator[int]:
    for part in users:
        yield from part[begin:]
        begin = max(0, begin - len(part))


def _until(users: tuple[range, ...], end: int) -> Iterator[int]:
    for part in users:
        yield from part[:end]
        end = max(0, end - len(part))


def _spoken(users: tuple[range, ...]) -> str:
    return " and ".join(f"from {part[0]} to {part[-1]}" for part in users)


def _and_pool(users: tuple[range, ...], rules: Rules) -> str:
    return "" if users == (rules.users,) else ", and in the cluster's pool"


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
