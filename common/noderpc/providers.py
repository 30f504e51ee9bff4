"""What a node tells of the providers of external storage that root has put there."""

from abc import abstractmethod

from common.messages import Report
from common.names import Path, Sentence, Word
from common.rpc.declare import NodeService, rpc


class ProviderReport(Report):
    """A provider; with a ``problem`` it is not used."""

    name: Word
    path: Path
    problem: Sentence = ""
    parameters: tuple[tuple[Word, Sentence], ...] = ()  # name and description


class Providers(NodeService, prefix="providers"):
    """Providers of one node."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def providers(self) -> tuple[ProviderReport, ...]:
        """Return all that are there, by name, whole or not."""
