"""TCP ports as they are given on command lines."""

from argparse import ArgumentTypeError

LARGEST = 65_535


def port(text: str) -> int:
    """Read a port.

    Raises:
        ArgumentTypeError: it is none; argparse says so.
    """
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= LARGEST):
        raise ArgumentTypeError(f"“{text}” is no port: they go from 1 to {LARGEST}")
    return int(text)
