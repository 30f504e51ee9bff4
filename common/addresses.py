"""IP addresses as they are asked for."""

from common.errors import InvalidRequest


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
