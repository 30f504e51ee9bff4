"""TCP ports as they are given on command lines."""

from argparse import ArgumentTypeError

LARGEST = 65_535


def port(text: str) -> int:
    """Read a port.

    Raises:
        ArgumentTypeError: it is none; argparse says so.
    """
    return _port(text, 1)


def own_port(text: str) -> int:
    """Read a port to listen on; 0 stands for any that is free.

    Raises:
        ArgumentTypeError: it is none.
    """
    return _port(text, 0)


def _port(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text[:6]) <= LARGEST):
        raise ArgumentTypeError(f"“{text}” is no port: they go from 1 to {LARGEST}")
    return int(text)
