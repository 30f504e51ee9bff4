"""Whoever asks where to send a guest's memory is told of a port where it is waited for."""

import asyncio
import socket
from pathlib import Path

from common.errors import NodeFailure
from common.names import InstanceId
from common.noderpc.instances import Reception
from common.tasks import Background
from noded.hypervisor.kvm.arrivals import Arrivals
from noded.hypervisor.kvm.greeting import connect
from noded.hypervisor.kvm.home import Home

HERE = "127.0.0.1"
WEB1 = InstanceId("6f1c2f3e-0000-4000-8000-000000000001")


def test_who_asks_just_when_a_move_has_failed_is_told_of_a_new_port(tmp_path: Path) -> None:
    """In the turn of the loop in which the waiting has ended, and nobody was told yet."""

    async def scenario() -> None:
        background, home = Background(), Home(tmp_path, WEB1)
        arrivals = Arrivals(HERE, background)
        again: asyncio.Future[Reception] = asyncio.get_running_loop().create_future()

        async def receive(_: Home, name: str, __: str, line: socket.socket) -> None:
            line.close()
            if not again.done():
                loop = asyncio.get_running_loop()
                loop.call_soon(lambda: again.set_result(arrivals.open(home, name, receive)))
            raise NodeFailure("QEMU did not want it.")

        first = arrivals.open(home, "web1", receive)
        (await connect(HERE, first.port, first.secret)).close()
        second = await again
        assert second.secret != first.secret
        assert arrivals.open(home, "web1", receive) == second  # what had ended took nothing along
        (await connect(HERE, second.port, second.secret)).close()
        await arrivals.end(WEB1)
        await background.close()

    asyncio.run(scenario())
