"""How fast DRBD 8.4 copies, and finds its peer.

Ten times a second the end that lacks something asks for as much as its rate allows, but never for
more than half of its buffers hold, less what has been asked for and is not there yet. With the
2048 pages that DRBD has by itself, that is 40 MiB/s at the very most, whatever rate is set.

Source: drbdsetup-8.4(8) of drbd-utils 9.22; drbd_worker.c, drbd_receiver.c and drbd_limits.h of
Linux 6.1.
"""

from collections.abc import Iterator

from common.model.disk_parameters import DrbdParameters

# Tenths of a second for which both sockets to a peer are watched, before they are used: one may
# have crossed with the peer's. DRBD itself waits as long as for an answer to a ping, which is five;
# needed is one way there and back. Where that takes longer, ends that have crossed try again.
SOCKET_CHECK = 2

_TURNS_S = 10
_PAGE_KIB = 4
_UNDER_WAY = 2  # turns whose answers may be awaited at a time
_LEAST, _MOST = 2048, 131072  # DRBD's own default and limit


def buffers(parameters: DrbdParameters) -> int:
    """Return how many pages a device may take to copy at its rate (``max-buffers``).

    They are taken when they are needed, and given back.
    """
    is_dynamic = parameters.dynamic_resync
    rate_kib = parameters.c_max_rate if is_dynamic else parameters.resync_rate
    in_a_turn = -(-rate_kib // (_TURNS_S * _PAGE_KIB))
    return max(_LEAST, min(2 * _UNDER_WAY * in_a_turn, _MOST))


def options(parameters: DrbdParameters) -> Iterator[str]:
    """Yield the rates, as ``drbdsetup attach`` takes them."""
    if not parameters.dynamic_resync:
        yield "--c-plan-ahead=0"
        yield f"--resync-rate={parameters.resync_rate}K"
        return
    yield f"--c-plan-ahead={parameters.c_plan_ahead}"
    yield f"--c-fill-target={parameters.c_fill_target}s"
    yield f"--c-delay-target={parameters.c_delay_target}"
    yield f"--c-max-rate={parameters.c_max_rate}K"
    yield f"--c-min-rate={parameters.c_min_rate}K"
