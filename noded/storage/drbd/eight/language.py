"""DRBD 8.4, as Linux itself has it."""

from functools import partial
from pathlib import Path

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands
from noded.storage.drbd.commands import Argv
from noded.storage.drbd.eight import commands as own
from noded.storage.drbd.eight import custom, netlink, parse, speed, superblock
from noded.storage.drbd.language import Change, Language
from noded.storage.drbd.messages import Attributes, as_flag, as_number, as_text
from noded.storage.drbd.module import VERIFY_DIGEST, Connection, Device


class Eight(Language):
    """Names a device by its number, and a connection by both addresses."""

    name = "8.4"
    metadata = "v08"

    def look(self, proc: Path) -> tuple[Device, ...]:
        messages = netlink.devices()
        progress: dict[int, parse.Progress] = {}
        if any(map(parse.is_copying, messages)):
            progress = parse.read_progress(proc.read_text())
        return parse.read_devices(messages, progress)

    def owner(self, minor: int) -> str | None:
        said = netlink.device(minor)
        return parse.resource_of(said) if said is not None else None

    def create(self, resource: str, minor: int, number: int) -> None:  # noqa: ARG002 -- of 9
        netlink.create(resource, minor)

    def introduce(
        self,
        connection: Connection,
        proof: Attributes,
        parameters: DrbdParameters,
        *,
        discard: bool,
        allow_two: bool,
    ) -> None:
        options = {
            4: as_text(VERIFY_DIGEST),
            6: as_number("ABC".index(parameters.protocol) + 1),
            14: as_number(speed.buffers(parameters)),
            24: as_flag(allow_two),
            25: as_flag(discard),
            34: as_number(speed.SOCKET_CHECK),
        }
        told = custom.read(commands.custom_net_options(parameters)) or {}
        netlink.connect(connection, {**proof, **options, **told})

    def left_to_tell(self, parameters: DrbdParameters) -> tuple[str, ...]:
        words = commands.custom_net_options(parameters)
        return words if custom.read(words) is None else ()

    def meet(self, connection: Connection, *, discard: bool) -> None:
        """Do nothing: it looks for its peer since it was told of it."""

    def remove(self, resource: str) -> None:
        netlink.remove(resource)

    def show_meta(self, minor: int, path: str) -> Argv:
        return commands.meta(minor, self.metadata, path, "get-gi")

    def create_meta(self, minor: int, path: str) -> Argv:
        return commands.create_meta(minor, self.metadata, path)

    def is_unclean(self, path: str) -> bool:
        return superblock.is_unclean(path)

    def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> Argv:
        return own.attach(minor, data, meta, size, parameters)

    def net_options(self, connection: Connection, *options: str) -> Argv:
        return own.net_options(connection, *options)

    def allow_two(self, connection: Connection, *, allowed: bool) -> Change:
        return partial(netlink.allow_two, connection, allowed=allowed)

    def disconnect(self, connection: Connection) -> Change:
        return partial(netlink.disconnect, connection)

    def primary(self, resource: str, minor: int, *, force: bool) -> Change:
        return partial(netlink.promote, resource, minor, force=force)

    def secondary(self, resource: str, minor: int) -> Change:
        return partial(netlink.demote, resource, minor)

    def declare_equal(self, minor: int) -> Change:
        return partial(netlink.declare_equal, minor)
