"""Waiting for a QEMU that was started."""

import asyncio
import contextlib

from common.errors import NodeFailure
from noded.hypervisor.kvm.home import Home, Record
from noded.hypervisor.kvm.monitor import Silent, monitor
from noded.hypervisor.kvm.parse import explain
from noded.system.process import Process

START_S = 30.0
LOOK_EVERY_S = 0.02  # QEMU comes up in 50 ms


async def until_up(home: Home, record: Record, started: Process) -> None:
    """Wait until QEMU has set up the machine and answers.

    Raises:
        NodeFailure: it does not, or has ended; with the last of what it and its TPM said.
    """
    try:
        async with asyncio.timeout(START_S):
            while not started.has_ended:
                with contextlib.suppress(Silent):
                    async with monitor(home.qmp_socket, record.name) as session:
                        await session.ask("query-status")
                        return
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError as error:
        raise NodeFailure(
            f"The QEMU of {record.name} did not answer within {START_S:g} s and was killed; "
            f"{_explain(home)}",
            instance=record.name,
        ) from error
    raise NodeFailure(f"{record.name} cannot be started: {_explain(home)}", instance=record.name)


def _explain(home: Home) -> str:
    return explain(home.last_words(), home.last_words_of_tpm())
