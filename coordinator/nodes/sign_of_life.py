"""Whether a machine runs, whatever has become of the daemons on it.

That is for its kernel to say: it takes a connection, or refuses it, also where nobody accepts any.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from coordinator.nodes.each import each

PATIENCE_S = 5.0  # two packets that were lost are sent again meanwhile

Address = tuple[str, int]  # IP, TCP port
IsAlive = Callable[[Collection[Address]], Awaitable[bool]]


async def is_alive(addresses: Collection[Address]) -> bool:
    """Tell whether anything at all answers at one of a machine's addresses.

    False says nothing: the machine may be cut off, or drop what it is sent.
    """
    answers = await each({address: _answers(*address) for address in addresses})
    return any(answer is True for answer in answers.values())


async def _answers(ip: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(ip, port)
    except ConnectionRefusedError:
        return True
    except OSError:  # TimeoutError, too
        return False
    writer.transport.abort()
    return True
