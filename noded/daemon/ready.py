"""Telling systemd that the daemon is ready. Source: sd_notify(3)."""

import contextlib
import os
import socket


def notify_ready() -> None:
    """Say READY=1 to whoever started us with ``NOTIFY_SOCKET``; nobody else notices."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"READY=1", name)
