"""What a certificate says that Python's ``ssl`` does not tell: its key, and when it is valid.

By hand, as ``cryptography`` is too large for a daemon whose memory is locked. Only of use for
certificates that somebody else has checked: here nothing is verified.
"""

import datetime
import hashlib
import ssl
from typing import NamedTuple

from common.errors import InvalidRequest
from common.names import KeyId

SEQUENCE, EXPLICIT_0, UTC_TIME = 0x30, 0xA0, 0x17
UTC = datetime.UTC


class Contents(NamedTuple):
    """``key`` identifies the public key; the times are seconds since 1970."""

    key: KeyId
    valid_from: float
    valid_until: float


def read_certificate(der: bytes) -> Contents:
    """Read a certificate in DER form (RFC 5280, 4.1).

    Raises:
        InvalidRequest: it is none.
    """
    try:
        (_, certificate, _), *_ = _elements(der)
        (_, signed, _), *_ = _elements(certificate)
        fields = _elements(signed)
        if fields[0].tag == EXPLICIT_0:  # the version, left out in those of version 1
            del fields[0]
        _serial, _algorithm, _issuer, validity, _subject, key, *_ = fields
        valid_from, valid_until = (_seconds(time) for time in _elements(validity.contents))
    except (ValueError, IndexError) as error:
        raise InvalidRequest(f"This is no certificate: {error}.") from error
    return Contents(key_id(key.whole), valid_from, valid_until)


def read_pem(text: str) -> Contents:
    """Read the first certificate of a PEM text.

    Raises:
        InvalidRequest: there is none.
    """
    try:
        _, header, rest = text.partition(ssl.PEM_HEADER)  # before that, some tell what is in it
        first, footer, _ = rest.partition(ssl.PEM_FOOTER)
        return read_certificate(ssl.PEM_cert_to_DER_cert(header + first + footer))
    except ValueError as error:
        raise InvalidRequest(f"This is no certificate: {error}.") from error


def key_id(public_key: bytes) -> KeyId:
    """Identify a public key, given as SubjectPublicKeyInfo in DER form: hex SHA-256."""
    return KeyId(hashlib.sha256(public_key).hexdigest())


class _Element(NamedTuple):
    tag: int
    contents: bytes
    whole: bytes  # with tag and length


def _elements(data: bytes) -> list[_Element]:
    """Take apart a row of DER elements (X.690, 8.1)."""
    found: list[_Element] = []
    while data:
        begin, length = 2, data[1]
        if length > 127:  # then it is the number of bytes that tell the length
            begin += length - 128
            length = int.from_bytes(data[2:begin], "big")
        if begin + length > len(data):
            raise ValueError("it is cut short")
        found.append(_Element(data[0], data[begin : begin + length], data[: begin + length]))
        data = data[begin + length :]
    return found


def _seconds(time: _Element) -> float:
    """Read a UTCTime, of 1950 to 2049, or a GeneralizedTime."""
    text = time.contents.decode("ascii")
    if time.tag == UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
