"""Calls about exports on this node."""

from common.noderpc.exports import ExportReport, Exports
from noded.exports.interface import ExportStore
from noded.system.turns import Turns


class ExportHandlers(Exports):
    """Carried out by the store, one at a time for each export."""

    def __init__(self, store: ExportStore) -> None:
        self._store = store
        self._turns = Turns()

    async def exports(self) -> tuple[str, ...]:
        return await self._store.exports()

    async def show(self, *, export: str) -> ExportReport:
        return await self._store.show(export)

    async def finish(self, *, export: str, config: str) -> None:
        async with self._turns.of(export):
            await self._store.finish(export, config)

    async def ensure_absent(self, *, export: str) -> None:
        async with self._turns.of(export):
            await self._store.remove(export)
