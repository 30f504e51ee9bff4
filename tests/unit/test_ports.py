from argparse import ArgumentTypeError

import pytest

from common.ports import own_port, port


def test_ports_are_read() -> None:
    assert [port("1"), port("1811"), port("65535")] == [1, 1811, 65_535]


@pytest.mark.parametrize("text", ["", "0", "65536", "99999999999999", "-1", "1.5", "x", "²"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="no port"):
        port(text)


def test_any_free_port_can_be_asked_for_to_listen_on_only() -> None:
    assert own_port("0") == 0
    assert own_port("65535") == 65_535
    with pytest.raises(ArgumentTypeError, match="no port"):
        own_port("65536")
