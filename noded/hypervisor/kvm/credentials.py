"""Lending the key of one move to a guest's QEMU, for as long as the move takes."""

import contextlib
import os
from pathlib import Path

from common.errors import NodeFailure
from noded.hypervisor.kvm import lending
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import CommandRefused, Monitor

USER = "gantry"  # TLS with a key has a name for it

_KEY = "move-key"  # what QEMU calls it
_FILE = "keys.psk"  # as QEMU wants it


async def give_key(session: Monitor, home: Home, secret: str, *, endpoint: str) -> None:
    """Give QEMU the key of a move, as its ``client`` or its ``server``, and no other any more."""
    await take_key(session, home)
    named = {"username": USER} if endpoint == "client" else {}
    await session.ask(
        "object-add",
        qom_type="tls-creds-psk",
        id=_KEY,
        endpoint=endpoint,
        dir=str(lend(home, secret)),
        **named,
    )
    await session.ask("migrate-set-parameters", tls_creds=_KEY)


async def take_key(session: Monitor, home: Home) -> None:
    """Leave nothing of a key in QEMU and on the disk; harmless when there is none."""
    forget(home)
    with contextlib.suppress(CommandRefused):  # it had none
        await session.ask("migrate-set-parameters", tls_creds="")
        await session.ask("object-del", id=_KEY)


def lend(home: Home, secret: str) -> Path:
    """Put the key where the guest's user, and nobody else, can read it; return the directory.

    QEMU as a server reads it when the other side has connected, so it stays until ``forget``.

    Raises:
        NodeFailure: it cannot be written.
    """
    record = home.record()
    user = record.user if record else os.geteuid()
    return lending.lend(home.tls, {_FILE: f"{USER}:{secret}\n".encode()}, user)


def lent(home: Home) -> str:
    """Return the key that is lent.

    Raises:
        NodeFailure: there is none.
    """
    try:
        return (home.tls / _FILE).read_text().strip().partition(":")[2]
    except OSError as error:
        raise NodeFailure(f"There is no key lent to a guest: {error.strerror}.") from error


def forget(home: Home) -> None:
    """Take the key away again; harmless when there is none."""
    lending.take_back(home.tls)
