"""DRBD 9, for two nodes: metadata with room for one peer, nodes that are number 0 and 1."""

from pathlib import Path

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd import commands
from noded.storage.drbd.commands import Argv
from noded.storage.drbd.language import Change, Language
from noded.storage.drbd.messages import Attributes, as_flag, as_number, as_text
from noded.storage.drbd.module import VERIFY_DIGEST, Connection, Device
from noded.storage.drbd.nine import commands as own
from noded.storage.drbd.nine import netlink, parse

RESOURCE_ONLY = 1  # fencing: a copy that cannot ask its peer is not taken for the newest


class Nine(Language):
    """Names a device by its resource, and a connection by the number of the peer."""

    name = "9"
    metadata = "v09"

    def look(self, proc: Path) -> tuple[Device, ...]:  # noqa: ARG002 -- it says nothing of devices
        return parse.read_devices(netlink.look())

    def owner(self, minor: int) -> str | None:
        return netlink.owner(minor)

    def create(self, resource: str, minor: int, number: int) -> None:
        netlink.create(resource, minor, number)

    def introduce(
        self,
        connection: Connection,
        proof: Attributes,
        parameters: DrbdParameters,
        *,
        discard: bool,  # noqa: ARG002 -- is told when it begins to look
        allow_two: bool,
    ) -> None:
        options = {
            4: as_text(VERIFY_DIGEST),
            6: as_number("ABC".index(parameters.protocol) + 1),
            24: as_flag(allow_two),
            30: as_number(RESOURCE_ONLY),
        }
        netlink.introduce(connection, {**proof, **options}, parameters)

    def left_to_tell(self, parameters: DrbdParameters) -> tuple[str, ...]:
        return commands.custom_net_options(parameters)

    def meet(self, connection: Connection, *, discard: bool) -> None:
        netlink.meet(connection, discard=discard)

    def remove(self, resource: str) -> None:
        netlink.remove(resource)

    def show_meta(self, minor: int, path: str) -> Argv:
        return commands.meta(minor, self.metadata, path, "get-gi", "--node-id=0")

    def create_meta(self, minor: int, path: str) -> Argv:
        return commands.create_meta(minor, self.metadata, path, str(own.PEERS))

    def is_unclean(self, path: str) -> bool:  # noqa: ARG002 -- its module says so, to who attaches
        return False

    def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> Argv:
        return commands.attach(minor, data, meta, size, parameters)

    def net_options(self, connection: Connection, *options: str) -> Argv:
        return own.net_options(connection, *options)

    def allow_two(self, connection: Connection, *, allowed: bool) -> Change:
        return own.net_options(connection, f"--allow-two-primaries={'yes' if allowed else 'no'}")

    def disconnect(self, connection: Connection) -> Change:
        return own.disconnect(connection)

    def primary(self, resource: str, minor: int, *, force: bool) -> Change:  # noqa: ARG002 -- of 8.4
        return own.primary(resource, force=force)

    def secondary(self, resource: str, minor: int) -> Change:  # noqa: ARG002 -- of 8.4
        return own.secondary(resource)

    def declare_equal(self, minor: int) -> Change:
        return own.declare_equal(minor)
