"""What all placements of one mastership share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.nodes.reports import Reports
from coordinator.operations.placement.demands import Demands
from coordinator.operations.placement.promises import Promises

RunProgram = Callable[[Path, Sequence[str], str], Awaitable[str]]
SearchPath = tuple[Path | None, ...]  # directories of programs; None is where our own comes


@dataclass(frozen=True)
class Placing:
    """Reports of nodes, promises of jobs, and how allocator programs are run.

    ``turn`` is held from the look at the cluster to the promise while a program chooses, since
    it takes its time: of two that chose at once, both would take the same place.
    """

    reports: Reports
    spaceless: Reports  # the same without what pools have free, which nodes take long to find out
    run_program: RunProgram  # path, options, input; returns what it printed
    search_path: SearchPath = (None,)
    promises: Promises = field(default_factory=Promises)
    demands: Demands = field(default_factory=Demands)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
