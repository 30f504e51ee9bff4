"""Calls about operating systems: their definitions, and their scripts."""

from common.names import Count
from common.noderpc.operating_systems import (
    DefinitionReport,
    OperatingSystems,
    RunId,
    ScriptOrder,
    ScriptReport,
)
from noded.operating_systems.interface import OsDriver
from noded.storage.storages import Storages
from noded.system.turns import Turns


class OsHandlers(OperatingSystems):
    """Carried out by the driver, one call at a time for each run."""

    def __init__(self, driver: OsDriver, storages: Storages) -> None:
        self._driver, self._storages = driver, storages
        self._turns = Turns()

    async def definitions(self) -> tuple[DefinitionReport, ...]:
        return await self._driver.definitions()

    async def check(self, *, order: ScriptOrder) -> None:
        await self._driver.check(order)

    async def begin(self, *, run: RunId, order: ScriptOrder) -> None:
        for disk in order.subject.disks:
            self._storages.of(disk).check_place(disk)
        async with self._turns.of(run):
            await self._driver.begin(run, order)

    async def look(self, *, run: RunId, offset: Count) -> ScriptReport:
        async with self._turns.of(run):
            return await self._driver.look(run, offset)

    async def ensure_ended(self, *, run: RunId) -> None:
        async with self._turns.of(run):
            await self._driver.end(run)
