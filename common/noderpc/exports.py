"""Exports: what is kept of an instance on a node, to make it anew from.

An export is a directory with ``config.ini`` and a file for each disk, its *dumps*; it has the name
of the instance. One that is being made is not seen before it is finished.
"""

from abc import abstractmethod
from typing import Annotated

from msgspec import Meta

from common.messages import Report
from common.names import MiB, Word
from common.rpc.declare import NodeService, rpc

ConfigText = Annotated[str, Meta(max_length=256 << 10)]


class ExportReport(Report):
    """What there is of an export; ``dumps`` are the sizes of its files, rounded up."""

    name: Word
    config: ConfigText
    dumps: dict[Word, MiB] = {}


class Exports(NodeService, prefix="exports"):
    """The exports on one node. Their dumps are disks like others, see ``DumpBacking``."""

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def exports(self) -> tuple[Word, ...]:
        """Return the names of all that are finished, sorted."""

    @rpc(timeout=15, safe_to_repeat=True, fenced=False)
    @abstractmethod
    async def show(self, *, export: Word) -> ExportReport:
        """Return what there is of an export.

        Raises:
            NotFound: there is none of that name.
            NodeFailure: it is damaged.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def finish(self, *, export: Word, config: ConfigText) -> None:
        """Put the export that was being made in the place of the one before, durably.

        One that has been finished so already stays as it is.

        Raises:
            NotFound: none was being made.
            NodeFailure: an I/O error.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_absent(self, *, export: Word) -> None:
        """Delete a finished export; one that is not there is fine."""
