"""What runs scripts on a node; the real one and the fake keep the same promises."""

from typing import Protocol

from common.noderpc.operating_systems import DefinitionReport, ScriptOrder, ScriptReport


class OsDriver(Protocol):
    """Definitions, and scripts by their runs; see ``common.noderpc.operating_systems``."""

    async def definitions(self) -> tuple[DefinitionReport, ...]: ...

    async def check(self, order: ScriptOrder) -> None: ...

    async def begin(self, run: str, order: ScriptOrder) -> None: ...

    async def look(self, run: str, offset: int) -> ScriptReport: ...

    async def end(self, run: str) -> None: ...
