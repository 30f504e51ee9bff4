"""IP addresses as they are asked for."""

from common.errors import InvalidRequest

_EVERYBODY = "255.255.255.255"
AF_INET, AF_INET6 = 2, 10


def check_ip(text: str, what: str) -> None:
    """Refuse what is no IP address.

    Args:
        text: version 4 or 6.
        what: for the message: "the secondary address of beta".

    Raises:
        InvalidRequest: says what it is instead.
    """
    from ipaddress import ip_address  # commands import this, and seldom have an address to check

    try:
        ip_address(text)
    except ValueError as error:
        raise InvalidRequest(
            f"“{text}” is no IP address, which {what} has to be, as in 192.0.2.7."
        ) from error


def check_reachable_ip(text: str, what: str) -> None:
    """Refuse what cannot be the address of a machine, for others.

    Args:
        text: version 4 or 6.
        what: as for ``check_ip``.

    Raises:
        InvalidRequest: it is no IP address, or one of no machine or of many.
    """
    from ipaddress import ip_address

    check_ip(text, what)
    address = ip_address(text)
    if address.is_unspecified or address.is_multicast or text == _EVERYBODY:
        raise InvalidRequest(
            f"“{text}” is the address of no single machine, which {what} has to be, as in "
            "192.0.2.7."
        )


def address_family(ip: str) -> int:
    """Return the number of an address's family, as Linux and Ganeti have it."""
    return AF_INET6 if ":" in ip else AF_INET
