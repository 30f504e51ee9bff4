"""How all tests run, and what is told of those that did not.

What was imported is not searched for garbage, no example is timed, and no story is left untold.
"""

import faulthandler
import gc
import math
import os
from collections import Counter
from collections.abc import Generator
from time import monotonic

import pytest
from hypothesis import settings

from tests.support.processes import add_option, pytest_runtestloop
from tests.support.seeds import examples
from tests.support.untold import untold

__all__ = ("pytest_runtestloop",)  # a hook


YOUNG_OBJECTS = 50_000  # instead of 700: simulations make many that die at once
HANGS_S = 120.0  # a test that takes longer shows where it is
LATE_S = 5.0  # how much later it may do so

gc.disable()  # while modules are imported and tests collected, next to nothing is garbage


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test that cannot fail, as it never has its story told."""
    if isinstance(item, pytest.Function) and (names := untold(item.function.__code__)):
        raise pytest.UsageError(f"{item.nodeid} never uses {', '.join(names)}, which it defines.")


def pytest_configure(config: pytest.Config) -> None:
    """Have random tests try as much as is asked for.

    A busy machine is no failure: by default an example that takes longer than 200 ms is one.
    """
    try:
        settings.register_profile("gantry", deadline=None, max_examples=examples(100))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    settings.load_profile("gantry")
    config.pluginmanager.register(_Hanging())


def pytest_collection_finish() -> None:
    """Have the collector look only at what tests make, not at all modules again and again."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let whoever runs the tests say in how many processes, and that the wire changes."""
    add_option(parser)
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files of tests/golden/wire"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell each reason for which tests were skipped once, in a line, before what failed."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, times in Counter(each.longrepr[-1] for each in skipped).most_common():
        terminalreporter.line(f"SKIPPED [{times}] {reason.removeprefix('Skipped: ')}")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


class _Hanging:
    """Shows where a test hangs.

    As pytest would, were it told a ``faulthandler_timeout``; but its timers are a thread for each
    test, and starting and ending one takes as long as many a test does.
    """

    def __init__(self) -> None:
        self._stderr = os.dup(2)  # before tests' output is captured
        self._set_at = -math.inf

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        if monotonic() > self._set_at + LATE_S:
            faulthandler.dump_traceback_later(HANGS_S + LATE_S, file=self._stderr)
            self._set_at = monotonic()
        try:
            return (yield)
        finally:
            if nextitem is None:  # what comes now is no test
                self._stop()

    def pytest_exception_interact(self) -> None:
        self._stop()  # somebody may look at it for long

    def _stop(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._set_at = -math.inf
