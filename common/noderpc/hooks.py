"""Hooks: scripts of root's on a node that are run before and after operations, as Ganeti's are.

``instance-start-pre.d`` and the like below one directory; Ganeti's ``doc/hooks.rst`` says what a
script may expect. ``watcher`` is run each time the watcher has looked.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from common.messages import Report
from common.names import Sentence, Word
from common.rpc.declare import NodeService, rpc

HookDirectory = Annotated[str, Meta(pattern=r"^([a-z][a-z-]{0,62}-(pre|post)\.d|watcher)$")]
Text = Annotated[str, Meta(max_length=64 << 10)]

SCRIPT_S = 60  # how long one script may take
DIRECTORY_S = 120  # all of a directory


class Ending(StrEnum):
    """How a script ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # it is not executable


class HookReport(Report):
    """What became of a script; ``said`` is the end of what it wrote, or why it was not run."""

    script: Word
    ending: Ending
    said: Sentence = ""


class Hooks(NodeService, prefix="hooks"):
    """The hooks of one node."""

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def present(self, *, directories: tuple[HookDirectory, ...]) -> tuple[HookDirectory, ...]:
        """Return which of these directories have anything to run."""

    @rpc(timeout=DIRECTORY_S + 15, safe_to_repeat=True)
    @abstractmethod
    async def run(
        self, *, directory: HookDirectory, environment: dict[Word, Text]
    ) -> tuple[HookReport, ...]:
        """Run what is in a directory, one script after the other in the order of their names.

        All are run, whatever becomes of one. A script that takes longer than ``SCRIPT_S`` is
        killed, with its children, and has failed; so have those for which no time is left.
        """
