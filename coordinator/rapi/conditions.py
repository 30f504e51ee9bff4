"""Versions of what is told (ETag), and requests that only count for one of them.

The version of an object is the serial number of its configuration and a sum of all that is told of
it. Reading is conditional on both; changing, on the serial number alone: that memory was freed
meanwhile is no reason not to rename a node.

Source: RFC 9110, 8.8.3 and 13.1.
"""

import hashlib
import re
from http import HTTPStatus

from coordinator.rapi.failures import refused

_TAG = re.compile(r'(?:W/)?"([^"]*)"')


def sum_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def version_of(serial: int, text: bytes) -> str:
    """Return the version of an object."""
    return f"{serial}-{sum_of(text)}"


def is_known(header: str | None, version: str) -> bool:
    """Tell whether who asks has this version already (If-None-Match)."""
    if header is None:
        return False
    return header.strip() == "*" or version in _TAG.findall(header)


def check_unchanged(header: str | None, serial: int | None) -> None:
    """Refuse a change of what has changed since it was read (If-Match).

    Args:
        header: what the request says.
        serial: of the object as it is now; None if there is none.

    Raises:
        Refusal: it has changed.
    """
    if header is None:
        return
    if serial is not None:
        serials = [tag.partition("-")[0] for tag in _TAG.findall(header)]
        if header.strip() == "*" or str(serial) in serials:
            return
    told = "It has changed since you have read it; read it again."
    raise refused(HTTPStatus.PRECONDITION_FAILED, told)


def check_acceptable(header: str | None, kind: str) -> None:
    """Refuse whoever does not take what there is (Accept).

    Raises:
        Refusal: says what there is.
    """
    if header is None or not header.strip() or accepts(header, kind):
        return
    raise refused(HTTPStatus.NOT_ACCEPTABLE, f"There is nothing here but {kind}.")


def accepts(header: str, kind: str) -> bool:
    """Tell whether a client takes a media type."""
    kind, _, _ = kind.partition(";")
    wide = f"{kind.partition('/')[0]}/*"
    for each in header.split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        if name in {kind, wide, "*/*"} and not any(map(_is_refusal, parameters)):
            return True
    return False


def _is_refusal(parameter: str) -> bool:
    return re.fullmatch(r"q\s*=\s*0(\.0*)?", parameter) is not None
