"""The port on which noded listens, kept by systemd from one noded to the next.

Any user of the node may bind a port above 1023. What was handed to systemd stays bound while
noded is killed, restarted or upgraded, and callers wait in the queue meanwhile.

Source: sd_pid_notify_with_fds(3), FDSTORE; sd_listen_fds(3).
"""

import errno
import os
import socket
from collections.abc import Mapping

from common.errors import Conflict, NodeFailure
from common.systemd import Supervisor

NAME = "port"  # of ours among what systemd keeps
_FIRST = 3  # descriptor that systemd passes


def open_port(
    address: str, port: int, supervisor: Supervisor, environment: Mapping[str, str] = os.environ
) -> socket.socket:
    """Bind the port, unless systemd has kept it; without an address on all of them.

    Args:
        address: one of this machine, or empty.
        port: 0 takes a free one, which nobody keeps.
        supervisor: who shall keep it.
        environment: where systemd says what it has kept.

    Raises:
        Conflict: somebody else listens there.
        NodeFailure: the address is none of this machine.
    """
    for kept in _kept(environment):
        if _is_at(kept, address, port):
            return kept
        kept.close()  # noded is told another one now
        supervisor.tell("FDSTOREREMOVE=1", f"FDNAME={NAME}")
    listener = _listen(address, port)
    if port:
        supervisor.keep(listener.fileno(), NAME)
    return listener


def _kept(environment: Mapping[str, str]) -> list[socket.socket]:
    """Return the sockets that systemd passes to this very process."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return []
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    found = []
    for number, name in enumerate(names, start=_FIRST):
        os.set_inheritable(number, False)  # noqa: FBT003 -- its only way; guests shall not get it
        if name == NAME:
            found.append(socket.socket(fileno=number))
    return found


def _is_at(kept: socket.socket, address: str, port: int) -> bool:
    host, bound, *_ = kept.getsockname()
    wanted = (address,) if address else ("::", "0.0.0.0")  # noqa: S104 -- as _listen binds them
    return bound == port and host in wanted


def _listen(address: str, port: int) -> socket.socket:
    """Bind the port; without an address on all of them, IPv6 too where there is any."""
    try:
        if not address and socket.has_dualstack_ipv6():
            try:
                return socket.create_server(
                    ("::", port), family=socket.AF_INET6, dualstack_ipv6=True
                )
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address or "0.0.0.0", port), family=family)  # noqa: S104
    except OSError as error:
        where = f"{address or 'all addresses'} port {port}"
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"Cannot listen on {where}: another program does; “ss -ltnp” tells which."
            ) from error
        raise NodeFailure(f"Cannot listen on {where}: {error.strerror or error}.") from error
