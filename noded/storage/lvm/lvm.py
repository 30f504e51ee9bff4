"""Running LVM: one look at groups, one change of them."""

from collections.abc import Iterable

from common.execute import CommandFailed, Finished
from noded.storage.lvm import commands
from noded.storage.lvm.commands import Command
from noded.storage.lvm.parse import Group, parse_groups, parse_missing
from noded.storage.lvm.refusals import no_group
from noded.system.execute import execute

LOOK_S = 30.0
CHANGE_S = 60.0
MERGE_S = 86_400.0  # reads and writes as much as the snapshot has room for


async def look(groups: Iterable[str]) -> dict[str, Group]:
    """Return what there is of groups, by name; those that do not exist are left out.

    Raises:
        CommandFailed: LVM is not installed, or cannot say.
    """
    asked = sorted(set(groups))
    while asked:
        try:
            return parse_groups((await _run(commands.look(asked), LOOK_S)).stdout)
        except CommandFailed as error:
            # One that it does not find is a failure of all, and half an output is none.
            missing = set(parse_missing(error.detail.get("stderr", "")))
            if not missing.intersection(asked):
                raise
            asked = [name for name in asked if name not in missing]
    return {}


async def look_at(*names: str) -> dict[str, Group]:
    """Return groups, by name.

    Raises:
        NodeFailure: there is none of a name.
        CommandFailed: as ``look``.
    """
    groups = await look(names)
    for name in names:
        if name not in groups:
            raise no_group(name)
    return groups


async def change(command: Command, timeout_s: float = CHANGE_S) -> None:
    """Carry out a command.

    Raises:
        CommandFailed: says why LVM refused.
    """
    await _run(command, timeout_s)


async def change_all(lines: Iterable[Command]) -> Finished:
    """Carry out commands by one process; what became of each, only what it said can tell."""
    return await execute("lvm", timeout_s=CHANGE_S, stdin=commands.script(lines))


async def _run(command: Command, timeout_s: float) -> Finished:
    return await execute("lvm", *command, timeout_s=timeout_s)
