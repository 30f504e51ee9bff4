"""From a datagram to the one that answers it, if any does."""

from typing import NamedTuple

from coordinator.confd.answers import ERROR, Trouble, answer
from coordinator.confd.directory import Directory
from coordinator.confd.envelope import LARGEST, Answer, open_question, sealed
from coordinator.confd.replays import Replays


class Known(NamedTuple):
    """What this node has been told; ``directory`` is None where its file cannot be read."""

    key: bytes
    directory: Directory | None


class Service:
    """Answers whoever has the cluster's key, each question once, and nobody else."""

    def __init__(self) -> None:
        self.known: Known | None = None  # until something is published here
        self._replays = Replays()

    def reply(self, datagram: bytes, now: float) -> bytes | None:
        """Return what is sent back.

        Args:
            datagram: of anybody.
            now: seconds since 1970.
        """
        if self.known is None:
            return None
        key, directory = self.known
        asked = open_question(datagram, key, now)
        if asked is None or not self._replays.is_new(asked, now):
            return None
        trouble = Answer(status=ERROR, answer=Trouble.INTERNAL, serial=0)
        told = trouble if directory is None else answer(asked.query, directory)
        reply = sealed(told, asked.query.rsalt, key)
        # What no client could take is not sent in part.
        return reply if len(reply) <= LARGEST else sealed(trouble, asked.query.rsalt, key)
