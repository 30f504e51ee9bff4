"""Strangers on the port where a guest's memory is waited for."""

import asyncio
import socket
from contextlib import suppress

import pytest

from common.tasks import Background
from noded.hypervisor.kvm import greeting
from noded.hypervisor.kvm.greeting import MOST_UNKNOWN, Listener, connect

HERE = "127.0.0.1"
SECRET = "5e" * 32


def strangers(port: int, count: int) -> list[socket.socket]:
    """Connect all at once, before the listener can do anything about it."""
    lines = [socket.create_connection((HERE, port)) for _ in range(count)]
    for line in lines:
        line.settimeout(0)
    return lines


async def ended(line: socket.socket) -> None:
    """Return when the other side has hung up."""
    with suppress(ConnectionError):
        while await asyncio.get_running_loop().sock_recv(line, 4096):
            pass


def test_strangers_who_come_all_at_once_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(greeting, "GREETING_S", 3600.0)  # nobody has to go for their silence

    async def scenario() -> None:
        background = Background()
        listener = Listener(HERE, SECRET, background)
        first = strangers(listener.port, MOST_UNKNOWN + 1)
        coming = background.start(listener.accept(), name="accept")
        await asyncio.get_running_loop().sock_recv(first[-1], 1)
        second = strangers(listener.port, MOST_UNKNOWN)
        async with asyncio.timeout(20):
            for line in first:
                await ended(line)
            theirs, ours = await connect(HERE, listener.port, SECRET), await coming
            for line in second:
                await ended(line)
        for line in (*first, *second, theirs, ours):
            line.close()
        await background.close()

    asyncio.run(scenario())
