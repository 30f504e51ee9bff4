"""How much of its memory a running guest uses: it gives the rest back, into a balloon."""

from msgspec.structs import replace

from common.errors import Conflict
from common.names import MiB
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import Silent, monitor
from noded.hypervisor.kvm.parse import parse_balloon

MIB = 1 << 20


async def set_memory(home: Home, record: Record, memory: MiB) -> None:
    """Ask a guest to use this much of its memory; it does when it gets to it, if ever.

    Raises:
        Conflict: it has no balloon.
        NodeFailure: it does not answer.
    """
    if record.nic_slots is None:
        raise Conflict(
            f"{record.name} has no balloon, since an older version has started it; reboot it to "
            "have it give memory back.",
            instance=record.name,
        )
    home.write(replace(record, wanted_memory=memory))
    async with monitor(home.qmp_socket, record.name) as session:
        await session.ask("balloon", value=memory * MIB)


async def used_memory(home: Home, record: Record, patience_s: float) -> MiB:
    """Return how much a guest uses that runs; 0 if that is all, or it does not say."""
    if not record.wanted_memory:
        return MiB(0)
    try:
        async with monitor(home.qmp_socket, record.name, patience_s=patience_s) as session:
            return min(parse_balloon(await session.ask("query-balloon")), record.memory)
    except Silent:
        return MiB(0)
