"""Addresses as operators give them: numbers, or the name of a host."""

import re
import socket
from ipaddress import ip_address

from common.errors import InvalidRequest

# The C library takes “999” for 0.0.3.231, “10.1” for 10.0.0.1 and “010.0.0.1” for 8.0.0.1
# (inet_aton(3)).
_NUMBERS = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", re.IGNORECASE)


def find_address(text: str) -> str:
    """Return the IP address itself, or the one that a host name leads to, as this machine sees it.

    Raises:
        InvalidRequest: neither; or a name that leads back to this machine, where others would
            look for themselves.
    """
    if not text:
        return text
    if _NUMBERS.fullmatch(text) and not _is_address(text):
        raise InvalidRequest(f"“{text}” is no IP address, as in 192.0.2.7, nor the name of a host.")
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


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
