"""DRBD's module of this node: changed by its programs, looked at without any."""

import logging
import os
import stat
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands, netlink, parse
from noded.storage.drbd.module import Connection, Device, DrbdModule, InUse, ModuleState
from noded.system.execute import CommandFailed, Finished, execute
from noded.system.threads import in_thread

MAJOR = 147  # of all its devices
DIGEST = "sha256"
VERIFY_DIGEST = "crc32c"
HELPER = "/bin/true"
UNCLEAN = "apply-al"  # is named to who attaches what was in use when its node went down
SUPERBLOCK_BYTES = 4096
TIME_S = 50.0  # of one command; what waits for a disk that hangs must not wait for ever

Run = Callable[..., Awaitable[Finished]]

log = logging.getLogger(__name__)


class LinuxDrbd(DrbdModule):
    """DRBD 8.4, as Linux has it."""

    def __init__(self, run: Run = execute, *, root: Path = Path("/")) -> None:
        """Run programs with ``run``; below ``root`` are ``proc`` and ``sys``."""
        self._run = run
        self._proc = root / "proc/drbd"
        self._settings = root / "sys/module/drbd/parameters"

    async def state(self) -> ModuleState:
        try:
            told = self._proc.read_text()
        except OSError:
            return ModuleState(
                problem="DRBD's kernel module is not loaded; run “modprobe drbd”, and name it in "
                "/etc/modules, so that it is there after a boot."
            )
        version = parse.read_version(told)
        if not version.startswith("8.4."):
            problem = f"DRBD's kernel module has version {version}; needed is 8.4, which Linux has."
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
        there = parse.count_devices(told)
        if there > most:
            problem = (
                f"DRBD's kernel module has memory for {most} devices and has {there}; set "
                "minor_count in /etc/modprobe.d, and load it anew."
            )
            return ModuleState(version, problem=problem)
        return ModuleState(version)

    async def look(self) -> tuple[Device, ...]:
        return await in_thread(self._look)

    def _look(self) -> tuple[Device, ...]:
        messages = netlink.devices()
        progress: dict[int, parse.Progress] = {}
        if any(map(parse.is_copying, messages)):
            progress = parse.read_progress(self._proc.read_text())
        return parse.read_devices(messages, progress)

    async def ensure_meta(self, minor: int, path: str) -> None:
        if await in_thread(_is_blank, path):  # as a volume is that was made for it
            await self._do(commands.create_meta(minor, path))
            return
        try:
            await self._do(commands.show_meta(minor, path))
        except CommandFailed as error:
            if error.detail.get("status") != 1:
                raise
            await self._do(commands.create_meta(minor, path))

    async def create(self, resource: str, minor: int) -> None:
        await in_thread(netlink.create, resource, minor)

    async def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> None:
        attach = commands.attach(minor, data, meta, size, parameters)
        try:
            await self._do(attach)
        except CommandFailed as error:
            if UNCLEAN not in str(error.detail.get("stderr", "")):
                raise
            await self._do(commands.apply_log(minor, meta))
            await self._do(attach)

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
        options = {
            4: VERIFY_DIGEST.encode() + b"\0",
            6: struct.pack("=I", "ABC".index(parameters.protocol) + 1),
            24: b"\1" if allow_two else b"\0",
            25: b"\1" if discard else b"\0",
        }
        proof = {1: secret.encode() + b"\0", 2: DIGEST.encode() + b"\0"}
        try:
            await in_thread(_connect, connection, proof | options)
        except netlink.DigestUnknown:
            # Nobody can force that on us: it is our own kernel that lacks it, and a peer whose
            # kernel has it refuses to go on without.
            log.warning(
                "The kernel has no HMAC of %s: the other end of %s does not prove who it is.",
                DIGEST, connection.resource,
            )  # fmt: skip
            await in_thread(_connect, connection, options)
        if custom := commands.custom_net_options(parameters):
            await self._do(commands.net_options(connection, *custom))

    async def disconnect(self, connection: Connection) -> None:
        await self._do(commands.disconnect(connection))

    async def allow_two(self, connection: Connection, *, allowed: bool) -> None:
        option = f"--allow-two-primaries={'yes' if allowed else 'no'}"
        await self._do(commands.net_options(connection, option))

    async def promote(self, minor: int, *, force: bool) -> None:
        await self._do(commands.primary(minor, force=force))

    async def demote(self, minor: int) -> None:
        await self._do(commands.secondary(minor))

    async def remove(self, resource: str) -> None:
        await in_thread(netlink.remove, resource)

    async def resize(self, minor: int, size: MiB) -> None:
        await self._do(commands.resize(minor, size))

    async def declare_equal(self, minor: int) -> None:
        await self._do(commands.declare_equal(minor))

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
        said = netlink.device(minor) if is_device else None
        if said is None or parse.resource_of(said) != resource:
            os.close(descriptor)
            raise NodeFailure(f"{path} cannot be opened: it is not the device of {resource}.")
        return descriptor

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


def _connect(connection: Connection, options: dict[int, bytes]) -> None:
    own, peer = connection.own, connection.peer
    netlink.connect(
        connection.resource, (own.address, own.port), (peer.address, peer.port), options
    )
