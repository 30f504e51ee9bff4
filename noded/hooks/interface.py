"""What runs hooks on a node; the real one and the fake keep the same promises."""

from collections.abc import Collection, Mapping
from typing import Protocol

from common.noderpc.hooks import HookReport


class HookRunner(Protocol):
    """The scripts that root has put on a node; see ``common.noderpc.hooks``."""

    async def present(self, directories: Collection[str]) -> tuple[str, ...]:
        """Return which directories have anything to run, in the order asked."""

    async def run(self, directory: str, environment: Mapping[str, str]) -> tuple[HookReport, ...]:
        """Run what is in a directory; see ``Hooks.run``."""
