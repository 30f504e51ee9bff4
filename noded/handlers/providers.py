"""Calls about the providers of external storage on this node."""

from pathlib import Path

from common.errors import NodeFailure
from common.noderpc.providers import ProviderReport, Providers
from noded.storage.ext.provider import providers, read_provider
from noded.system.threads import in_thread


class ProviderHandlers(Providers):
    def __init__(self, search_path: tuple[Path, ...]) -> None:
        self._search_path = search_path

    async def providers(self) -> tuple[ProviderReport, ...]:
        return await in_thread(lambda: tuple(map(_report, providers(self._search_path))))


def _report(directory: Path) -> ProviderReport:
    try:
        found = read_provider(directory)
    except NodeFailure as error:
        return ProviderReport(name=directory.name, path=str(directory), problem=error.message)
    return ProviderReport(name=found.name, path=str(directory), parameters=found.parameters)
