"""What keeps exports on a node; the real one and the fake keep the same promises."""

import re
from typing import Protocol

from common.errors import InvalidRequest
from common.model.backing import DumpBacking
from common.names import check_name
from common.noderpc.disks import DiskSpec
from common.noderpc.exports import ExportReport
from noded.storage.interface import Storage

CONFIG = "config.ini"

_DUMP = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,200}")


class ExportStore(Storage, Protocol):
    """Keeps exports, and their dumps as disks.

    What is kept of a dump has no owner: whoever knows its name may have it.
    """

    async def exports(self) -> tuple[str, ...]:
        """Return the names of all that are finished, sorted."""

    async def show(self, export: str) -> ExportReport:
        """Return what there is of an export; see ``Exports.show``."""

    async def finish(self, export: str, config: str) -> None:
        """Put the export that was being made in the place of the one before, durably."""

    async def remove(self, export: str) -> None:
        """Delete a finished export, if it is there."""


def dump_of(disk: DiskSpec) -> DumpBacking:
    """Return where a dump is.

    Raises:
        InvalidRequest: it is none, or its name is not fit for a file.
    """
    backing: object = disk.backing
    if not isinstance(backing, DumpBacking):
        raise InvalidRequest("This disk is no part of an export.", disk=disk.id)
    check_name(backing.export, "export")
    if not _DUMP.fullmatch(backing.name) or backing.name == CONFIG:
        raise InvalidRequest(f"“{backing.name}” is no name for a part of an export.")
    return backing
