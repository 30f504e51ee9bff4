"""A coordinator for commands to talk to: it knows the small cluster, and has scripted jobs."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import GntError, InvalidRequest
from common.luxi.answers import failure, read_request, success, unreadable
from common.luxi.framing import Decoder
from common.paths import Paths
from coordinator.queries.classic import config_values, query_jobs
from coordinator.queries.cluster_info import cluster_info
from coordinator.queries.config_data import config_data
from coordinator.queries.query import query, query_fields
from tests.unit.queries.cluster import STATE, source

Method = Callable[..., Any]


class ScriptedCoordinator:
    """Answers each connection in a thread; ``methods`` may be replaced by a test."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(str(root))
        self.source = source()
        self.submitted: list[Any] = []
        self.methods: dict[str, Method] = {
            "Query": lambda what, fields, condition: asyncio.run(
                query(what, fields, condition, self.source)
            ),
            "QueryFields": query_fields,
            "QueryJobs": lambda ids, fields: asyncio.run(query_jobs(ids, fields, self.source)),
            "QueryConfigValues": lambda names: config_values(names, STATE.config),
            "QueryClusterInfo": lambda: cluster_info(STATE.config),
            "ExportConfiguration": lambda: config_data(STATE),
            "SubmitJob": self._submit,
            "SubmitManyJobs": lambda jobs: [[True, self._submit(job)] for job in jobs],
        }

    def script_job(self, *news: Any, ends: str = "success", failure: Any = None,
                   result: Any = None) -> None:  # fmt: skip
        """Have every job say ``news`` in turn, and end so."""
        left = list(news)

        def wait(*_: Any) -> Any:
            told = left.pop(0) if left else [[ends], []]
            if isinstance(told, BaseException):
                raise told
            return told

        self.methods["WaitForJobChange"] = wait
        self.methods["QueryJobs"] = lambda ids, _: [[ends, [result], [failure]] for _ in ids]

    def _submit(self, job: Any) -> int:
        self.submitted.append(job)
        return 40 + len(self.submitted)

    @contextmanager
    def serving(self) -> Iterator[None]:
        path = self.paths.luxi_socket
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()
            thread = threading.Thread(target=self._accept, args=(listener,), daemon=True)
            thread.start()
            yield
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
        path.unlink()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        decoder = Decoder()
        while data := connection.recv(65536):
            for text in decoder.feed(data):
                answer = self._answer(text)
                if not answer:
                    return
                connection.sendall(answer)

    def _answer(self, text: bytes) -> bytes:
        try:
            request = read_request(text)
        except InvalidRequest as error:
            return unreadable(error)
        try:
            return success(self.methods[request.method](*request.args), request)
        except GntError as error:
            return failure(error, request)
        except ConnectionError:  # by a test that has the coordinator die
            return b""
