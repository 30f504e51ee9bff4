"""Guests whose memory is waited for on this node: a port and a secret for each."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from common.errors import NodeFailure
from common.names import InstanceId
from common.noderpc.instances import Reception
from common.tasks import Background
from noded.hypervisor.kvm.greeting import Listener
from noded.hypervisor.kvm.home import Home

SECRET_BYTES = 32

TakeIn = Callable[[Home, str, str, socket.socket], Awaitable[None]]
"""Has a guest's QEMU receive from a connection, under a secret; the name is for messages."""

log = logging.getLogger(__name__)


class Arrivals:
    """Keeps listening while this noded lives; the next one listens anew, on another port."""

    def __init__(self, address: str, background: Background) -> None:
        self._address = address
        self._background = background
        self._waiting: dict[InstanceId, _Waiting] = {}

    def open(self, home: Home, name: str, take_in: TakeIn, secret: str = "") -> Reception:
        """Listen for the memory of a guest; go on listening if we do so already.

        Args:
            home: the guest's.
            name: for messages.
            take_in: has its QEMU go on with who knows the secret.
            secret: that of a line before this one; a new one without.

        Raises:
            NodeFailure: our address is not this node's.
        """
        waiting = self._waiting.get(home.instance)
        if waiting is None or waiting.task.done():  # of which we are told in the next turn
            secret = secret or secrets.token_hex(SECRET_BYTES)
            listener = Listener(self._address, secret, self._background)
            task = self._background.start(
                self._take_in(home, name, listener, take_in), name=f"for {name}"
            )
            waiting = self._waiting[home.instance] = _Waiting(listener, task)
            task.add_done_callback(lambda _: self._over(home.instance, listener))
        return Reception(port=waiting.listener.port, secret=waiting.listener.secret)

    async def end(self, instance: InstanceId) -> None:
        """Wait for a guest's memory no more, and return when the port is closed."""
        if waiting := self._waiting.get(instance):
            waiting.task.cancel()
            await asyncio.wait([waiting.task])

    async def _take_in(self, home: Home, name: str, listener: Listener, take_in: TakeIn) -> None:
        line = await listener.accept()
        try:
            await take_in(home, name, listener.secret, line)
        except NodeFailure as error:
            log.warning("the memory of %s cannot be received: %s", name, error)

    def _over(self, instance: InstanceId, listener: Listener) -> None:
        listener.close()  # also when its task was cancelled before its first step
        waiting = self._waiting.get(instance)
        if waiting and waiting.listener is listener:  # and not the one of another move
            del self._waiting[instance]


class _Waiting(NamedTuple):
    listener: Listener
    task: asyncio.Task[None]
