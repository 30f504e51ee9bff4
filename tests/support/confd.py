"""Questions to ``gantry-confd``, sealed as a client does."""

import hashlib
import hmac
import json
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from coordinator.confd.files import PublishedFiles
from coordinator.confd.service import Service

NOW = 1_800_000_000.0
_numbers = count()


class Told(NamedTuple):
    status: int
    answer: Any
    serial: int


def seal(message: str, salt: str, key: bytes) -> str:
    return hmac.new(key, (salt + message).encode(), hashlib.sha1).hexdigest()


def question(
    key: bytes, kind: Any, query: Any = None, *, now: float = NOW, salt: str = "s", **other: Any
) -> bytes:
    """Return the datagram of a client."""
    asked = {"protocol": 1, "type": kind, "query": query, "rsalt": salt} | other
    message = json.dumps(asked)
    sent = {"msg": message, "salt": f"{int(now)}"}
    return b"plj0" + json.dumps(sent | {"hmac": seal(message, sent["salt"], key)}).encode()


def read(datagram: bytes, key: bytes, *, salt: str = "s") -> Told:
    """Read an answer, as the one who asked with ``salt``."""
    assert datagram.startswith(b"plj0")
    envelope = json.loads(datagram[4:])
    assert envelope["salt"] == salt
    assert envelope["hmac"] == seal(envelope["msg"], salt, key)
    told = json.loads(envelope["msg"])
    assert told["protocol"] == 1
    return Told(told["status"], told["answer"], told["serial"])


def ask(service: Service, kind: int, query: Any = None) -> Told | None:
    """Ask something that was not asked before; None when there is no answer."""
    if service.known is None:
        return None
    key = service.known.key
    datagram = question(key, kind, query, now=NOW, salt=(salt := str(next(_numbers))))
    reply = service.reply(datagram, NOW)
    return None if reply is None else read(reply, key, salt=salt)


def service_of(folder: Path) -> Service:
    """Return a service that tells what is published in a folder."""
    service = Service()
    service.known = PublishedFiles(folder).read()
    return service
