"""A coordinator of which the answers to a watcher are made up."""

from collections.abc import Callable
from typing import Any

from coordinator.watcher.conversation import SOURCE, Request, Round, Told
from coordinator.watcher.round import one_round

NOW = 1_800_000_000.0


class Answering:
    """A coordinator of which the answers are made up; ``down`` should run and do not."""

    def __init__(self, *down: str) -> None:
        self.down = list(down)
        self.pause: float | None = None
        self.drained = False
        self.fences = False
        self.nodes: list[list[Any]] = []
        self.mirrors: list[list[Any]] = []
        self.reserved: list[list[Any]] = []
        self.jobs: list[list[Any]] = []
        self.locks: list[list[Any]] = []
        self.asked: list[Request] = []
        self.ordered: list[dict[str, Any]] = []
        self.refuses: str | None = None
        self.complaints: list[str] = []

    def hold(
        self, now: float = NOW, talk: Callable[..., Round] = one_round, **options: Any
    ) -> list[Told]:
        conversation = talk(now, **options)
        answer: Any = None
        try:
            while True:
                request = conversation.send(answer)
                self.asked.append(request)
                answer = self._answer(*request)
        except StopIteration as end:
            told: list[Told] = end.value
            return told

    def _answer(self, method: str, args: tuple[Any, ...]) -> Any:
        match method, *args:
            case "QueryConfigValues", names:
                return [self.pause, self.drained, False, self.fences, False][: len(names)]
            case "Query", "instance", fields, *_ if "mirror_state" in fields:
                return _table(self.mirrors)
            case "Query", "instance", fields, *_ if "expires" in fields:
                return _table(self.reserved)
            case "Query", "job", ["ops"], *_:  # for what has expired
                return _table([[ops] for _, _, _, ops in self.jobs])
            case "Query", "instance", *_:
                return _table([[name] for name in self.down])
            case "Query", "job", fields, *_ if len(fields) == 2:  # for mirrors
                return _table([[status, ops] for _, _, status, ops in self.jobs])
            case "Query", "job", *_:
                return _table(self.jobs)
            case "Query", ("lock" | "node") as kind, *_:
                return _table({"lock": self.locks, "node": self.nodes}[kind])
            case "SubmitManyJobs", jobs:
                if self.refuses is not None:
                    return [[False, self.refuses] for _ in jobs]
                self.ordered += [op for (op,) in jobs]
                return [[True, 40 + number] for number, _ in enumerate(jobs)]
            case (("RunWatcherHooks" | "AutoArchiveJobs"), *_):
                return {"RunWatcherHooks": self.complaints, "AutoArchiveJobs": [3, 10]}[method]
            case _:
                raise AssertionError(f"unexpected {method}{args}")

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.asked]

    def remember(self, ago_s: float) -> None:
        """Have started web1 so long ago."""
        then = int(NOW - ago_s)
        trail = [[SOURCE, "should run", then * 10**9]]
        op = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1", "reason": trail}
        self.jobs.append([[then, 0], [then + 1, 500_000], "error", [op]])


def _table(rows: list[list[Any]]) -> dict[str, Any]:
    return {"fields": [], "data": [[[0, value] for value in row] for row in rows]}
