"""From a datagram to the one that answers it, if any does."""

from typing import NamedTuple

import msgspec

from coordinator.confd.answers import ERROR, Trouble, answer
from coordinator.confd.directory import Directory
from coordinator.confd.envelope import LARGEST, Answer, open_question, sealed
from coordinator.confd.replays import Replays
from coordinator.confd.shortening import forms


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
        salt = asked.query.rsalt
        if directory is None:
            return sealed(_trouble(Trouble.INTERNAL), salt, key)
        told = answer(asked.query, directory)
        for form in forms(told.answer):
            reply = sealed(msgspec.structs.replace(told, answer=form), salt, key)
            if len(reply) <= LARGEST:
                return reply
        # What no client could take is not cut off anywhere: it has to ask for less.
        return sealed(_trouble(Trouble.ARGUMENT), salt, key)


def _trouble(which: Trouble) -> Answer:
    return Answer(status=ERROR, answer=which, serial=0)
