"""In which ways QEMU moves guests: always, and as is asked for."""

from collections.abc import Mapping
from typing import NamedTuple

from common.model.kvm import KvmParameters
from common.model.kvm_words import POST_COPY, ways_of
from common.noderpc.instances import Reception
from noded.hypervisor.kvm.monitor import Monitor
from noded.hypervisor.kvm.progress import Progress, parse_progress

LINE = "move-line"  # what QEMU calls it
# The guest is slowed down when it changes memory faster than the network carries it.
_CAPABILITIES = ("return-path", "auto-converge", "late-block-activate", "events")
_OF_THE_SOURCE = ("xbzrle",)  # what only the source has to know


class Line(NamedTuple):
    """Where the memory goes: an address, the target's name, and what it has told."""

    host: str
    peer: str
    reception: Reception


class Manner(NamedTuple):
    """How it goes there: as ``parameters`` say, the guest running meanwhile if ``live``."""

    parameters: KvmParameters
    live: bool

    @property
    def is_post_copy(self) -> bool:
        """Whether it goes on there before all of its memory does."""
        return self.live and POST_COPY in self._wanted

    @property
    def ways(self) -> dict[str, bool]:
        """What its source is told besides what always holds."""
        ways = {name: name in self._wanted for name in _OF_THE_SOURCE}
        return ways | {POST_COPY: self.is_post_copy}

    @property
    def _wanted(self) -> set[str]:
        return ways_of(self.parameters.migration_caps)


async def set_ways(session: Monitor, wanted: Mapping[str, bool]) -> None:
    """Have QEMU move guests in the ways in which we do, and as is wanted besides."""
    every = {**dict.fromkeys(_CAPABILITIES, True), **wanted}
    capabilities = [{"capability": name, "state": state} for name, state in every.items()]
    await session.ask("migrate-set-capabilities", capabilities=capabilities)


async def progress_of(session: Monitor) -> Progress:
    """Ask QEMU how its transfer is going."""
    return parse_progress(await session.ask("query-migrate"))
