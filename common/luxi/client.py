"""The client's half of LUXI: one call after the other over a unix socket.

Imported by every command, so it makes do with ``json`` and ``socket``: importing msgspec
takes longer than all the rest of a list command.
"""

import contextlib
import json
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from common.errors import Unreachable
from common.luxi.failures import from_ganeti, from_wire
from common.luxi.framing import Decoder, frame

CONNECT_S = 30.0
ANSWER_S = 180.0
SLOW_S = 3.0  # for an answer; from then on people wonder


class NoCoordinator(Unreachable):
    """Nobody listens on the socket, or we may not speak to it; ``reason`` says which.

    The reasons: missing, refused, forbidden, other.
    """

    code = "unreachable.coordinator"


class ConnectionLost(Unreachable):
    """The connection ended before the answer came; what became of the request is unknown."""

    code = "unreachable.connection-lost"


class Client:
    """A connection to the coordinator, opened by the first call and again after it was lost."""

    def __init__(
        self,
        path: str,
        *,
        connect_s: float = CONNECT_S,
        slow: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use the unix socket at ``path``; give up connecting after ``connect_s``.

        ``slow`` is called with the method when its answer takes long.
        """
        self._path = path
        self._connect_s = connect_s
        self._slow = slow
        self._socket: socket.socket | None = None
        self._decoder = Decoder()

    def call(self, method: str, *args: Any, answer_s: float = ANSWER_S) -> Any:
        """Return the result of one call.

        Args:
            method: LUXI method, as "QueryClusterInfo".
            args: JSON values.
            answer_s: how long to wait for each part of the answer.

        Raises:
            NoCoordinator: no connection.
            ConnectionLost: it ended, or answered with something else than LUXI.
            Unreachable: no answer in time.
            GntError: as the coordinator raised it.
        """
        request = json.dumps({"method": method, "args": args}).encode()
        try:
            told = json.loads(self._exchange(frame(request), method, answer_s))
        except (ValueError, RecursionError) as error:
            self.close()
            raise ConnectionLost(f"{self._path} answered with no JSON text: {error}.") from error
        match told:
            case {"success": True, "result": result}:
                return result
            case {"success": False, "result": result}:
                raise from_wire(told.get("error")) or from_ganeti(result)
            case _:
                self.close()
                raise ConnectionLost(f"{self._path} does not answer as a coordinator would.")

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _exchange(self, message: bytes, method: str, answer_s: float) -> bytes:
        connection = self._socket or self._connect()
        connection.settimeout(answer_s)
        try:
            # A server that hangs up early has often said why; so read even if writing fails.
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(message)
            if answer_s > SLOW_S:
                self._watch(connection, method)
                connection.settimeout(answer_s)
            while data := connection.recv(2**18):
                if answers := self._decoder.feed(data):
                    return answers[0]
        except TimeoutError as error:
            self.close()
            raise Unreachable(
                f"The coordinator has not answered {method} within {answer_s:g} seconds."
            ) from error
        except OSError as error:
            self.close()
            raise self._hung_up(method) from error
        except BaseException:  # Ctrl-C too: a late answer must not be taken for the next one
            self.close()
            raise
        self.close()
        raise self._hung_up(method)

    def _watch(self, connection: socket.socket, method: str) -> None:
        """Say so once if nothing comes for a while."""
        connection.settimeout(SLOW_S)
        try:
            connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            self._slow(method)

    def _connect(self) -> socket.socket:
        self._decoder = Decoder()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self._connect_s)
        try:
            connection.connect(self._path)
        except OSError as error:
            connection.close()
            raise self._no_coordinator(error) from error
        self._socket = connection
        return connection

    def _hung_up(self, method: str) -> ConnectionLost:
        return ConnectionLost(
            f"The coordinator hung up before it answered {method}; it may have been restarted."
        )

    def _no_coordinator(self, error: OSError) -> NoCoordinator:
        match error:
            case FileNotFoundError() | NotADirectoryError():
                reason, why = "missing", f"there is no socket {self._path}"
            case ConnectionRefusedError():
                reason, why = "refused", f"nobody listens on {self._path}"
            case PermissionError():
                reason, why = "forbidden", f"this user may not use {self._path}"
            case TimeoutError():
                reason, why = "other", f"{self._path} takes no connections"
            case _:
                reason, why = "other", f"{self._path}: {error.strerror or error}"
        return NoCoordinator(f"Cannot reach the coordinator: {why}.", reason=reason)
