"""The target of a move: a QEMU that receives a guest's memory, and runs it when it is told to."""

import socket

from common.errors import Conflict, NodeFailure
from common.model.kvm import KvmParameters
from common.model.kvm_words import POST_COPY
from common.noderpc.instances import GuestSpec, GuestState
from noded.hypervisor.kvm.credentials import give_key, take_key
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.lifelines import Lifelines
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor, monitor
from noded.hypervisor.kvm.parse import parse_state
from noded.hypervisor.kvm.ways import LINE, progress_of, set_ways

_NO_POST_COPY = (
    "its QEMU cannot receive a guest by post-copy; with kernels since 5.11, QEMU up to 7.2 needs "
    "vm.unprivileged_userfaultfd=1 for that (sysctl), newer ones the right to open "
    "/dev/userfaultfd. Allow it on this node, or take “postcopy-ram” from migration_caps"
)


async def prepare(home: Home, guest: GuestSpec) -> None:
    """Have a fresh QEMU know in which ways a guest may come.

    Raises:
        NodeFailure: it cannot come so, or QEMU is silent.
    """
    post_copy = KvmParameters.is_moved_by_post_copy(guest.parameters)
    async with monitor(home.qmp_socket, guest.name) as session:
        try:
            await set_ways(session, {POST_COPY: post_copy})
        except CommandRefused as error:
            if not post_copy:
                raise
            raise NodeFailure(
                f"{guest.name} cannot be received here: {_NO_POST_COPY}. QEMU said: "
                f"{error.detail['reason']}.",
                instance=guest.name,
            ) from error


async def receive(home: Home, name: str, secret: str, line: socket.socket) -> None:
    """Have a fresh QEMU receive memory from a connection; our copy of that is closed.

    Raises:
        NodeFailure: QEMU refuses or is silent.
    """
    with line:
        async with monitor(home.qmp_socket, name) as session:
            await give_key(session, home, secret, endpoint="server")
            await session.give(LINE, line)
            await session.ask("migrate-incoming", uri=f"fd:{LINE}")


async def resume(home: Home, name: str, lifelines: Lifelines) -> None:
    """Have a guest run whose memory is here, or comes.

    Raises:
        Conflict: it is not here as a whole.
        NodeFailure: QEMU is silent, or cannot open the guest's disks.
    """
    async with monitor(home.qmp_socket, name) as session:
        # To a QEMU that still waits, "cont" would mean to run as soon as all is there.
        if not await has_arrived(session):
            raise Conflict(f"{name} cannot run here: its memory has not arrived.", instance=name)
        lacks_memory = bool((await progress_of(session)).rest)
        if lacks_memory:
            home.lack_memory()
            await lifelines.hold(home, name)
        home.let_run()
        await session.ask("cont")
        if not lacks_memory:  # else its next line needs the key, too
            await take_key(session, home)


async def has_arrived(session: Monitor) -> bool:
    """Tell whether a guest can run on a target: all of its memory is there, or the rest comes."""
    if parse_state(await session.ask("query-status")) is GuestState.INCOMING:
        return False
    return (await progress_of(session)).has_left
