"""What is told to who asks for a disk: the disk, or what a script writes in its place."""

import os
from collections.abc import Callable

from noded.copies.ending import Ending
from noded.copies.estimate import open_estimate
from noded.copies.orders import Bringing, Sending
from noded.copies.serving import Serving
from noded.copies.source import Source
from noded.copies.streams import StreamServing, is_stream, meet
from noded.images.contents import contents_of


def serving(
    order: Sending | Bringing,
    *,
    begin: Callable[[int, int], None] = lambda _size, _done: None,
    advance: Callable[[int, int], None] = lambda _done, _sent: None,
) -> Serving | StreamServing:
    """Return what serves as ordered; a script is met first, which takes rights that are given up.

    It says how far it is by ``begin`` and ``advance``, in bytes of the disk and on the line.
    """
    if is_stream(order.disk):
        estimate = open_estimate(order.disk)
        ending = Ending(order.disk)
        pipe = meet(order.disk, os.O_RDONLY)
        return StreamServing(
            pipe,
            estimate,
            ending,
            compression=order.compression,
            rate=order.rate,
            advance=advance,
        )
    source = Source(contents_of(order.disk, order.layout), order.compression)
    return Serving(source, path=order.path, rate=order.rate, begin=begin, advance=advance)
