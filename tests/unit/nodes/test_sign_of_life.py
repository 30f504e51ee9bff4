"""A machine is seen to run by what its kernel says, whatever its daemons do."""

import asyncio
import socket

from coordinator.nodes.sign_of_life import is_alive

LOCALHOST = "127.0.0.1"


def test_a_kernel_answers_for_daemons_that_hang_or_are_gone() -> None:
    with socket.socket() as hangs:  # as where systemd keeps the socket of one that does not start
        hangs.bind((LOCALHOST, 0))
        hangs.listen()
        assert asyncio.run(is_alive([hangs.getsockname()]))
    with socket.socket() as gone:  # nobody else gets the port meanwhile
        gone.bind((LOCALHOST, 0))
        assert asyncio.run(is_alive([gone.getsockname()]))


def test_where_nothing_answers_nothing_is_seen() -> None:
    assert not asyncio.run(is_alive([("255.255.255.255", 1811)]))  # is nobody's
    assert not asyncio.run(is_alive([]))
