"""Addresses as operators give them: numbers, or the name of a host."""

import socket

from common.errors import InvalidRequest


def find_address(text: str) -> str:
    """Return the IP address itself, or the one that a host name leads to, as this machine sees it.

    Raises:
        InvalidRequest: neither; or a name that leads back to this machine, where others would
            look for themselves.
    """
    if not text:
        return text
    try:
        found = socket.getaddrinfo(text, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(
            f"“{text}” is no IP address, and no name service knows a host of that name."
        ) from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if text in addresses:
        return text
    usable = [each for each in addresses if not each.startswith("127.") and each != "::1"]
    if not usable:
        raise InvalidRequest(
            f"The name {text} leads to {addresses[0]} here, where every machine finds itself; give "
            "the IP address."
        )
    return next((each for each in usable if ":" not in each), usable[0])
