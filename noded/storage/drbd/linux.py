"""DRBD's module of this node: changed by its programs, looked at without any."""

import logging
import os
import re
import stat
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands
from noded.storage.drbd.conversion import why_not_converted
from noded.storage.drbd.language import Change, Language
from noded.storage.drbd.line import DigestUnknown
from noded.storage.drbd.messages import as_text
from noded.storage.drbd.module import (
    DIGEST,
    Connection,
    Device,
    DrbdModule,
    InUse,
    ModuleState,
)
from noded.storage.drbd.versions import EIGHT, NINE, NOT_LOADED, read_version
from noded.system.execute import CommandFailed, Finished, execute
from noded.system.threads import Threads

MAJOR = 147  # of all its devices
HELPER = "/bin/true"
UNCLEAN = "apply-al"  # is named to who attaches what has to be brought up to date before
UNKNOWN = "meta-data signature"  # of what the module does not take for metadata
NO_METADATA = 1  # the status of drbdmeta
SUPERBLOCK_BYTES = 4096
TIME_S = 50.0  # of one command; what waits for a disk that hangs must not wait for ever
# The module does what it is asked while it is asked, which may take for ever, and a thread cannot
# be ended. So does a look at metadata on a disk that hangs, before they are attached. Whatever else
# noded does in threads, as keeping its grants, must not wait for these.
MOST_CHANGES, MOST_LOOKS = 4, 2
CHANGE_S, LOOK_S = 30.0, 20.0  # less than calls are given, and more than DRBD misses a peer for
HELD_UP = (
    "DRBD's kernel module does not get on: {} wait for it already, so it is asked no more. "
    "The kernel may say why (“dmesg”): a disk that hangs holds it up, or a peer that does not "
    "answer. If neither comes back, only a restart of this node helps."
)

Run = Callable[..., Awaitable[Finished]]

_DEVICE = re.compile(r"^ *[0-9]+: cs:", re.MULTILINE)

log = logging.getLogger(__name__)


class LinuxDrbd(DrbdModule):
    """DRBD 8.4, as Linux has it, or DRBD 9; which one is looked up each time, as it may change."""

    def __init__(self, run: Run = execute, *, root: Path = Path("/")) -> None:
        """Run programs with ``run``; below ``root`` are ``proc`` and ``sys``."""
        self._run = run
        self._proc = root / "proc/drbd"
        # The file in proc tells it as well, and of all devices, as often as it is read.
        self._version = root / "sys/module/drbd/version"
        self._settings = root / "sys/module/drbd/parameters"
        changes, looks = f"{MOST_CHANGES} changes", f"{MOST_LOOKS} looks"
        self._changes = Threads(MOST_CHANGES, patience_s=CHANGE_S, busy=HELD_UP.format(changes))
        self._looks = Threads(MOST_LOOKS, patience_s=LOOK_S, busy=HELD_UP.format(looks))

    async def state(self) -> ModuleState:
        try:
            version, language = read_version(self._version.read_text())
            told = self._proc.read_text()
        except OSError:
            return ModuleState(problem=NOT_LOADED)
        if language is None:
            problem = (
                f"DRBD's kernel module has version {version}; needed is 8.4, which Linux has, or 9 "
                "from 9.1 on."
            )
            return ModuleState(version, problem=problem)
        helper = (self._settings / "usermode_helper").read_text().strip()
        if helper != HELPER:
            problem = (
                f"DRBD's kernel module runs {helper} when something happens; have it do nothing: "
                f"“options drbd usermode_helper={HELPER} minor_count=128” in /etc/modprobe.d, and "
                "load it anew."
            )
            return ModuleState(version, helper, problem)
        most = int((self._settings / "minor_count").read_text())
        there = len(_DEVICE.findall(told))  # 9 tells of none there
        if there > most:
            problem = (
                f"DRBD's kernel module has memory for {most} devices and has {there}; set "
                "minor_count in /etc/modprobe.d, and load it anew."
            )
            return ModuleState(version, problem=problem)
        return ModuleState(version)

    def _language(self) -> Language:
        try:
            version, language = read_version(self._version.read_text())
        except OSError as error:
            raise NodeFailure(NOT_LOADED) from error
        if language is None:
            raise NodeFailure(f"DRBD's kernel module has version {version}, which is not known.")
        return language

    async def look(self) -> tuple[Device, ...]:
        return await self._looks.run(self._language().look, self._proc)

    async def ensure_meta(self, minor: int, path: str) -> None:
        language = self._language()
        if await self._changes.run(_is_blank, path):  # as a volume is that was made for it
            await self._do(language.create_meta(minor, path))
            return
        if await self._generations(language, minor, path) is not None:
            return
        if not await self._convert(language, minor, path):
            await self._do(language.create_meta(minor, path))

    async def _generations(self, language: Language, minor: int, path: str) -> str | None:
        """Return what metadata of a version tell; None: there are none of it."""
        try:
            return (await self._do(language.show_meta(minor, path))).stdout.decode()
        except CommandFailed as error:
            if error.detail.get("status") != NO_METADATA:
                raise
            return None

    async def _convert(self, language: Language, minor: int, path: str) -> bool:
        """Have metadata of the other version become those of this one; False: there are none.

        Raises:
            NodeFailure: something would be lost.
        """
        other = EIGHT if language is NINE else NINE
        told = await self._generations(other, minor, path)
        if told is None:
            return False
        reason = why_not_converted(told) if other is EIGHT else "that is not done backwards"
        if reason:
            raise NodeFailure(
                f"The metadata in {path} are of DRBD {other.name}, and this node has DRBD "
                f"{language.name} now. They are not converted: {reason}. Start this node with the "
                f"kernel that has DRBD {other.name} until both copies are equal. If this copy is "
                "not needed, “gnt-instance replace-disks” makes it anew.",
                path=path,
            )
        log.info("converting the metadata in %s to those of DRBD %s", path, language.name)
        await self._do(language.create_meta(minor, path))
        await self._do(commands.apply_log(minor, language.metadata, path))
        return True

    async def create(self, resource: str, minor: int, number: int) -> None:
        await self._changes.run(self._language().create, resource, minor, number)

    async def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> None:
        language = self._language()
        attach = language.attach(minor, data, meta, size, parameters)
        if await self._changes.run(language.is_unclean, meta):
            await self._clean(language, minor, meta)
        try:
            await self._do(attach)
        except CommandFailed as error:
            said = str(error.detail.get("stderr", ""))
            if UNCLEAN in said:
                await self._clean(language, minor, meta)
            elif UNKNOWN not in said or not await self._convert(language, minor, meta):
                raise
            await self._do(attach)

    async def _clean(self, language: Language, minor: int, path: str) -> None:
        """Bring metadata up to date; to DRBD 9, all those of 8.4 are not."""
        try:
            await self._do(commands.apply_log(minor, language.metadata, path))
        except CommandFailed as error:
            is_none = error.detail.get("status") == NO_METADATA
            if not is_none or not await self._convert(language, minor, path):
                raise

    async def detach(self, minor: int) -> None:
        await self._do(commands.detach(minor))

    async def connect(
        self,
        connection: Connection,
        secret: str,
        parameters: DrbdParameters,
        *,
        discard: bool,
        allow_two: bool,
    ) -> None:
        language = self._language()
        introduce = partial(language.introduce, discard=discard, allow_two=allow_two)
        proof = {1: as_text(secret), 2: as_text(DIGEST)}
        try:
            await self._changes.run(introduce, connection, proof, parameters)
        except DigestUnknown:
            # Nobody can force that on us: it is our own kernel that lacks it, and a peer whose
            # kernel has it refuses to go on without.
            log.warning(
                "The kernel has no HMAC of %s: the other end of %s does not prove who it is.",
                DIGEST, connection.resource,
            )  # fmt: skip
            await self._changes.run(introduce, connection, {}, parameters)
        if custom := language.left_to_tell(parameters):
            await self._do(language.net_options(connection, *custom))
        await self._changes.run(partial(language.meet, connection, discard=discard))

    async def disconnect(self, connection: Connection) -> None:
        await self._change(self._language().disconnect(connection))

    async def allow_two(self, connection: Connection, *, allowed: bool) -> None:
        await self._change(self._language().allow_two(connection, allowed=allowed))

    async def promote(self, resource: str, minor: int, *, force: bool) -> None:
        await self._change(self._language().primary(resource, minor, force=force))

    async def demote(self, resource: str, minor: int) -> None:
        await self._change(self._language().secondary(resource, minor))

    async def remove(self, resource: str) -> None:
        await self._changes.run(self._language().remove, resource)

    async def resize(self, minor: int, size: MiB) -> None:
        await self._do(commands.resize(minor, size))

    async def declare_equal(self, minor: int) -> None:
        await self._change(self._language().declare_equal(minor))

    def open(self, resource: str, minor: int, *, read_only: bool) -> int:
        path = f"/dev/drbd{minor}"
        flags = os.O_RDONLY if read_only else os.O_RDWR
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise NodeFailure(f"{path} cannot be opened: {error.strerror}.") from error
        # What is open stays what it is, so it is looked at afterwards.
        found = os.fstat(descriptor)
        is_device = stat.S_ISBLK(found.st_mode) and found.st_rdev == os.makedev(MAJOR, minor)
        if not is_device or self._language().owner(minor) != resource:
            os.close(descriptor)
            raise NodeFailure(f"{path} cannot be opened: it is not the device of {resource}.")
        return descriptor

    async def _change(self, change: Change) -> None:
        if callable(change):
            await self._changes.run(change)
        else:
            await self._do(change)

    async def _do(self, argv: commands.Argv) -> Finished:
        try:
            return await self._run(*argv, timeout_s=TIME_S)
        except CommandFailed as error:
            if "held open" in str(error.detail.get("stderr", "")):
                raise InUse(error.message) from error
            raise


def _is_blank(path: str) -> bool:
    """Tell whether there are only zeros where metadata begins. Blocks."""
    try:
        with Path(path).open("rb") as file:
            return not any(file.read(SUPERBLOCK_BYTES))
    except OSError as error:
        raise NodeFailure(f"{path} cannot be read: {error.strerror}.") from error
