"""Hear all guests of a lab, on whatever node they are, until it is over."""

import subprocess
import threading
import time
from pathlib import Path
from typing import Self

from deploy.uml.command import begin, end
from deploy.uml.node import Node
from tests.lab.chaos.record import Record
from tests.support.sequence import Sequence

PROGRAM = Path(__file__).with_name("listen.py")
AGAIN_S = 0.5  # a node that is off, or frozen, may be back


class Ears:
    """One for each node; they tell the record what is said."""

    def __init__(self, nodes: list[Node], record: Record) -> None:
        self._record, self._lock = record, threading.Lock()
        self._threads = [threading.Thread(target=self._listen, args=(node,)) for node in nodes]
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._over = threading.Event()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._lock:
            processes = list(self._processes.values())
        for process in processes:
            process.kill()
        for thread in self._threads:
            thread.join()

    def told(self) -> dict[str, int]:
        """Return the largest number that each guest has told by now."""
        with self._lock:
            return dict(self._record.told)

    def lost(self) -> list[str]:
        with self._lock:
            return list(self._record.lost)

    def check(self, guest: str, told: int, where: str, found: Sequence) -> list[str]:
        return self._record.check(guest, told, where, found)

    def _listen(self, node: Node) -> None:
        while not self._over.is_set():
            if node.state == "on":
                self._hear(node)
            time.sleep(AGAIN_S)

    def _hear(self, node: Node) -> None:
        process = begin((*node.ssh(), "exec python3.11 -u -"))
        with self._lock:
            self._processes[node.name] = process
        try:
            assert process.stdin
            assert process.stdout
            try:
                process.stdin.write(PROGRAM.read_text())
                process.stdin.close()
            except OSError:
                return  # the node has just gone
            process.stdin = None
            for line in process.stdout:
                with self._lock:
                    self._record.hear(line)
        finally:
            end(process)
