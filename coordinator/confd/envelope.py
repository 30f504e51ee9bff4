"""Datagrams of Ganeti's confd protocol: who may ask, and how an answer is sealed.

A datagram is ``plj0`` and JSON with a message (JSON, too), a salt, and the HMAC-SHA1 of both. The
salt of a question is the time at which it was asked, that of an answer what the question says.
"""

import hmac
from dataclasses import dataclass
from typing import Any

import msgspec

from common.messages import Report, to_json

MAGIC = b"plj0"
PROTOCOL = 1
LARGEST = 61_440  # bytes of a datagram, as Ganeti's clients send and take them
MOST_SKEW_S = 300  # between the clock of who asks and ours
_LONGEST_TIME = 12  # digits


class Envelope(Report):
    msg: str
    salt: str
    hmac: str


class Query(Report):
    """What is asked: ``query`` is empty, a name, or an object, as the type wants it."""

    protocol: int
    type: int
    rsalt: str
    query: Any = None


class Answer(Report):
    """What is told.

    Of several answers that with the highest ``serial`` counts.
    """

    status: int
    answer: Any
    serial: int
    protocol: int = PROTOCOL


@dataclass(frozen=True)
class Asked:
    """A question of somebody who has the key; ``seal`` is of no other, so it tells replays."""

    query: Query
    time: int
    seal: bytes


def open_question(datagram: bytes, key: bytes, now: float) -> Asked | None:
    """Read a question; None if it is none, too old, or of somebody who has not the key."""
    if not datagram.startswith(MAGIC) or len(datagram) > LARGEST:
        return None
    try:
        envelope = msgspec.json.decode(datagram[len(MAGIC) :], type=Envelope)
        time = _time(envelope.salt)
        if time is None or abs(now - time) > MOST_SKEW_S:
            return None
        seal = _seal(envelope.msg, envelope.salt, key).encode()
        if not hmac.compare_digest(envelope.hmac.lower().encode(), seal):
            return None
        return Asked(msgspec.json.decode(envelope.msg, type=Query), time, seal)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or nested without end
        return None


def sealed(answer: Answer, salt: str, key: bytes) -> bytes:
    """Return the datagram that carries an answer."""
    message = to_json(answer).decode()
    envelope = Envelope(msg=message, salt=salt, hmac=_seal(message, salt, key))
    return MAGIC + to_json(envelope)


def _seal(message: str, salt: str, key: bytes) -> str:
    return hmac.new(key, (salt + message).encode(), "sha1").hexdigest()


def _time(salt: str) -> int | None:
    """Read seconds since 1970."""
    is_time = salt.isascii() and salt.isdigit() and len(salt) <= _LONGEST_TIME
    return int(salt) if is_time else None
