"""The child process of ``noded.identity.keys``: reads a wish, writes what was made."""

import asyncio
import sys

from common.messages import from_json, to_json
from noded.identity.keys import KeyPair, OwnKeyMaker, SigningRequest, Wish


async def fulfil(wish: Wish) -> KeyPair | SigningRequest:
    """Make what is wished for."""
    maker = OwnKeyMaker()
    if wish.node is None:
        return await maker.temporary(wish.now)
    return await maker.request(wish.node, wish.key)


def main() -> None:
    wish = from_json(sys.stdin.buffer.read(), Wish, what="the wish for keys")
    sys.stdout.buffer.write(to_json(asyncio.run(fulfil(wish))))


if __name__ == "__main__":
    main()
