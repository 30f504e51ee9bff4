from argparse import ArgumentTypeError

import pytest

from common.ports import port


def test_ports_are_read() -> None:
    assert [port("1"), port("1811"), port("65535")] == [1, 1811, 65_535]


@pytest.mark.parametrize("text", ["", "0", "65536", "99999999999999", "-1", "1.5", "x", "²"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="no port"):
        port(text)
