"""Copying a whole volume from node to node: by DRBD, and by dd, which does nothing else."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from deploy.uml.node import Node
from deploy.uml.place import GROUP

PORT = 7999

_COPY = """
import re, subprocess, time
def told():
    return open('/proc/drbd').read()
minor = re.search('([0-9]+): cs:Connected', told())[1]
subprocess.run(['drbdsetup', 'invalidate-remote', minor], check=True)
while 'cs:Connected' not in told():
    time.sleep(0.1)
"""
_LISTEN = f"""
import socket, sys
connection, _ = socket.create_server(('', {PORT})).accept()
while data := connection.recv(1 << 20):
    sys.stdout.buffer.write(data)
"""


def copy_all(node: Node, patience_s: float) -> None:
    """Have a node copy all of the only mirrored disk that it has to its peer."""
    node.run(f'python3.11 -c "{_COPY}"', timeout_s=patience_s)


@contextmanager
def sending_by_dd(one: Node, other: Node, size_mib: int) -> Iterator[Callable[[], None]]:
    """Yield what copies a volume to another such one by dd, past the caches of both nodes."""
    volume = f"/dev/{GROUP}/figures"
    make = f"lvcreate --yes --quiet --wipesignatures n --size {size_mib}M --name figures {GROUP}"
    receive = f'python3.11 -c "{_LISTEN}" | dd of={volume} bs=1M iflag=fullblock oflag=direct'

    def send() -> None:
        one.run(f"dd if={volume} iflag=direct bs=1M >/dev/tcp/{other.spot.address}/{PORT}")
        received.result()

    for node in (one, other):
        node.run(make)
    try:
        with ThreadPoolExecutor() as pool:
            received = pool.submit(other.run, receive)
            other.run(f"until [[ $(</proc/net/tcp) == *:{PORT:04X}* ]]; do :; done")  # it listens
            yield send
    finally:
        for node in (one, other):
            node.run(f"lvremove --yes --quiet {GROUP}/figures")
