"""How all tests run, and what is told of those that did not.

What was imported is not searched for garbage, no example is timed, and no story is left untold.
"""

import gc
from collections import Counter

import pytest
from hypothesis import settings

from tests.support.processes import add_option, pytest_runtestloop
from tests.support.untold import untold

__all__ = ("pytest_runtestloop",)  # a hook

# A busy machine is no failure: by default an example that takes longer than 200 ms is one.
settings.register_profile("gantry", deadline=None)
settings.load_profile("gantry")

YOUNG_OBJECTS = 10_000  # instead of 700: simulations make many that die at once

gc.disable()  # while modules are imported and tests collected, next to nothing is garbage


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a test that cannot fail, as it never has its story told."""
    if isinstance(item, pytest.Function) and (names := untold(item.function.__code__)):
        raise pytest.UsageError(f"{item.nodeid} never uses {', '.join(names)}, which it defines.")


def pytest_collection_finish() -> None:
    """Have the collector look only at what tests make, not at all modules again and again."""
    gc.collect()
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
