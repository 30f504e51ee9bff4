"""Several processes for one run of pytest: ``pytest --processes 2``.

Once all tests are known the process forks, so nothing is imported twice. Each process takes the
next test that nobody has taken, so none is idle while there are some; tests that stand together and
have the same parameters are taken together, as they share what is costly. So are all tests of a
file beside Debian's programs, as they share a cluster that remembers what they did, and those of
the layers, for which each process would have to read the whole tree.

What takes longest begins first: all tests that are about the machine itself, its ports and
devices, are taken by one process, so that no two of them meet; and the first process begins with
the stories of the lab, a file at a time. Others join it, each with a lab of its own, when nothing
else is left and there is room for one. What the others find is told by the first, in pytest's own
words: there is one run, with one summary.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from multiprocessing import Pipe, Value
from multiprocessing.connection import Connection
from queue import SimpleQueue
from select import select
from threading import Thread
from typing import Any

import pytest

from deploy.uml.room import has_room

LAB = "lab"  # the directory of the tests with which the first process begins
TOGETHER = ("contract",)  # directories that are taken as a whole: those about the machine itself
# Files that are: of directories whose tests share a cluster, and one that reads the tree.
WHOLE = ("diff", LAB, "test_layers.py")
LAB_NAME = "GANTRY_LAB"  # names the only lab that stories are to be played in
NODES = 6  # a lab has half as many, which take more with time
GRACE_S = 30.0  # for what a test that is broken off puts away


def add_option(parser: pytest.Parser) -> None:
    """Declare ``--processes``."""
    parser.addoption(
        "--processes", type=int, default=1, metavar="N",
        help="share the tests out among so many processes",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in several processes, instead of pytest's own loop."""
    helpers = session.config.getoption("--processes") - 1
    if helpers < 1 or session.testsfailed or session.config.option.collectonly:
        return None  # as usual
    stories = _Turns([each for each in session.items if each.path.parent.name == LAB])
    others = _Turns([each for each in session.items if each.path.parent.name != LAB])
    getattr(session.config, "_tmp_path_factory").getbasetemp()  # noqa: B009 -- one for all
    with _helping(session, chain(others, _in_another_lab(stories)), helpers) as found:
        for test, following in _with_following(chain(stories, others)):
            _run(session, test, following)
            for each in found:
                each.tell()
        for each in found:
            each.tell(to_the_end=True)
    return True


def _in_another_lab(stories: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Take stories, if they can be played in a lab beside that of the first process."""
    if LAB_NAME not in os.environ and has_room(NODES):
        yield from stories


def _with_following(
    tests: Iterable[pytest.Item],
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Give each test with the one that this process runs next."""
    rest = iter(tests)
    taken = next(rest, None)
    while taken is not None:
        following = next(rest, None)
        yield taken, following
        taken = following


def _run(session: pytest.Session, test: pytest.Item, following: pytest.Item | None) -> None:
    session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
    _stop_if_due(session)


def _stop_if_due(session: pytest.Session) -> None:
    """Stop after as many failures as pytest was told to bear, those of other processes, too."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


class _Turns:
    """Tests that nobody has taken yet, the same for all processes.

    What is shared is how many groups were taken, behind a lock.
    """

    def __init__(self, tests: Sequence[pytest.Item]) -> None:
        groups = groupby(enumerate(sorted(tests, key=_rank)), lambda test: _shared_by(*test))
        self._groups = [[test for _, test in group] for _, group in groups]
        self._taken = Value("Q", 0)

    def __iter__(self) -> Iterator[pytest.Item]:
        """Take one test after the other."""
        return chain.from_iterable(iter(self._take, []))

    def _take(self) -> list[pytest.Item]:
        with self._taken.get_lock():
            number = self._taken.value
            self._taken.value += 1
        return self._groups[number] if number < len(self._groups) else []


def _rank(test: pytest.Item) -> int:
    """Return the lower a number the more tests are taken at once, so that these begin first."""
    return 0 if _is_of_whole_directory(test) else 1 if _is_of_whole_file(test) else 2


def _shared_by(number: int, test: pytest.Item) -> object:
    """Return what is equal for tests that one process takes: of a directory, of a file, or of one
    file with the same parameters."""
    if _is_of_whole_directory(test):
        return test.path.parent
    if _is_of_whole_file(test):
        return test.path
    parameters = getattr(test, "callspec", None)
    return (test.path, parameters.id) if parameters else number


def _is_of_whole_directory(test: pytest.Item) -> bool:
    return test.path.parent.name in TOGETHER


def _is_of_whole_file(test: pytest.Item) -> bool:
    return test.path.parent.name in WHOLE or test.path.name in WHOLE


@contextmanager
def _helping(
    session: pytest.Session, turns: Iterable[pytest.Item], count: int
) -> Iterator[list["_Found"]]:
    """Have ``count`` other processes take turns, and end them."""
    children, pipes = [], []
    for _ in range(count):
        ours, theirs = Pipe(duplex=False)
        if (child := os.fork()) == 0:
            _help(session, turns, theirs)
        theirs.close()
        children.append(child)
        pipes.append(ours)
    try:
        yield [_Found(session, each) for each in pipes]
    finally:
        for child in children:
            _end(child)


def _end(child: int) -> None:
    """Have a process end, after it has put away what its test has made if there is one."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGINT)
    ends = os.pidfd_open(child)
    select([ends], [], [], GRACE_S)
    os.close(ends)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


class _Found:
    """What one of the other processes has found out."""

    def __init__(self, session: pytest.Session, told: Connection) -> None:
        self._session, self._told = session, told
        self._busy_with = "the beginning"
        self._news: SimpleQueue[str | dict[str, Any] | None] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Take what is told at once: a story of the lab takes minutes, and a pipe holds little."""
        with suppress(EOFError):
            while True:
                self._news.put(self._told.recv())
        self._news.put(None)

    def tell(self, *, to_the_end: bool = False) -> None:
        """Pass on what there is by now, or all there will be."""
        while self._busy_with and (to_the_end or not self._news.empty()):
            news = self._news.get()
            if news is None:
                pytest.exit(f"A process of the tests died at {self._busy_with}.", returncode=3)
            if isinstance(news, str):
                self._busy_with = news
            else:
                config = self._session.config
                report = config.hook.pytest_report_from_serializable(config=config, data=news)
                config.hook.pytest_runtest_logreport(report=report)
                _stop_if_due(self._session)


def _help(session: pytest.Session, turns: Iterable[pytest.Item], told: Connection) -> None:
    """Be one of the other processes; does not return."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored
        plugins = session.config.pluginmanager
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # its files are the first process's
        capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        plugins.register(_Telling(session.config, told))
        for test, following in _with_following(turns):
            _run(session, test, following)
        told.send("")
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may be said twice
        getattr(session, "_setupstate").teardown_exact(None)  # noqa: B009 -- as pytest does
    finally:  # whatever happens: the first process says how the run ends
        os._exit(0)


class _Telling:
    def __init__(self, config: pytest.Config, told: Connection) -> None:
        self._config, self._told = config, told

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._told.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._told.send(hook.pytest_report_to_serializable(config=self._config, report=report))
