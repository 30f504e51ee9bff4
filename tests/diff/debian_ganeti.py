"""Debian's own Ganeti commands, unpacked by deploy/setup, and a cluster of ours to talk to.

The cluster is one of the simulation, run in a thread by an event loop that skips time while a job
is under way only, since programs outside of this process have no part in virtual time.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from common.model.job import Job
from common.paths import Paths
from coordinator.master.luxi_server import LuxiServer
from coordinator.operations.test.delay import DELAY_TEST
from coordinator.operations.test.job_queue import QUEUE_TEST
from noded.copies.fake_between import FakeBridge
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.hurried import HurriedLoop

UNPACKED = Path(__file__).parents[2] / ".cache" / "ganeti"
COMMANDS = UNPACKED / "usr/share/ganeti/3.0"
LIBRARIES = UNPACKED / "usr/lib/python3/dist-packages"
PYTHON = "/usr/bin/python3"  # Debian's libraries are made for this one

needs_ganeti = pytest.mark.skipif(
    not COMMANDS.is_dir(),
    reason="DEBIAN'S GANETI IS NOT UNPACKED (deploy/setup --test): its commands were not run",
)


# Each in a process of its own, as they leave much behind: sys.argv, handlers of logs, signals.
_ONE_AFTER_THE_OTHER = """
import json, os, shlex, sys, tempfile, traceback

def run(line):
    program, *words = shlex.split(line)
    main = loaded(program, words)
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            code = 70
            try:
                sys.argv = [program, *words]
                code = main()
            except SystemExit as end:
                code = end.code
            except Exception:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code or 0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return said.read().decode(), code

print(json.dumps([run(line) for line in json.load(sys.stdin)]))
"""


_DEBIANS = """
from importlib import import_module

def loaded(program, words):
    return import_module("ganeti.client." + program.replace("-", "_")).Main
"""
_OURS = """
from coordinator.cli.main import guarded, run_area

def loaded(program, words):
    return lambda: guarded(lambda: run_area(program, words))
"""

_COMMANDS = """
import json
from importlib import import_module

told, aliases = {}, {}
for area in "backup cluster debug filter group instance job network node os storage".split():
    module = import_module(f"ganeti.client.gnt_{area}")
    for name, (_, _, options, *_) in module.commands.items():
        told[f"gnt-{area} {name}"] = [o._long_opts + o._short_opts for o in options]
    for alias, name in getattr(module, "aliases", {}).items():
        aliases[f"gnt-{area} {alias}"] = name
print(json.dumps([told, aliases]))
"""


def ask_libraries(program: str) -> Any:
    """Return what a program of Debian's Python prints, as JSON, with its libraries to import."""
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [PYTHON, "-c", program],
        env={"PYTHONPATH": f"{COMMANDS}:{LIBRARIES}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def options_of_commands() -> dict[str, list[str]]:
    """Return the long options of each of Debian's commands, as ``gnt-node list``."""
    told, _ = ask_libraries(_COMMANDS)
    return {
        command: sorted(flags[0] for flags in options if flags[0].startswith("--"))
        for command, options in told.items()
    }


def spellings_of_commands() -> dict[str, list[list[str]]]:
    """Return for each command of Debian's all spellings of each option, and of it by its aliases.

    An alias stands beside its command, with the same options.
    """
    told, aliases = ask_libraries(_COMMANDS)
    areas = {alias: alias.partition(" ")[0] for alias in aliases}
    also = {alias: told[f"{areas[alias]} {name}"] for alias, name in aliases.items()}
    return {**told, **also}


class Said(NamedTuple):
    """What a command wrote, on both its outputs, and its exit code."""

    text: str
    code: int


@dataclass
class Served:
    """A cluster behind a socket where Ganeti's commands look for theirs.

    Attributes:
        root: the folder that takes the place of ``/`` for these commands.
    """

    root: Path
    cluster: SimulatedCluster
    loop: asyncio.AbstractEventLoop

    def gnt(self, program: str, *words: str) -> Said:
        """Run a command of Debian's, as ``gnt("gnt-instance", "list")``."""
        done = self._run([PYTHON, str(COMMANDS / program), *words], "")
        return Said(done.stdout, done.returncode)

    def gnt_all(self, lines: Sequence[str]) -> list[Said]:
        """Run commands one after the other, importing Debian's libraries only once."""
        return self._run_all([PYTHON, "-c", _DEBIANS + _ONE_AFTER_THE_OTHER], lines)

    def ours_all(self, lines: Sequence[str]) -> list[Said]:
        """Run commands of ours likewise."""
        return self._run_all([sys.executable, "-P", "-c", _OURS + _ONE_AFTER_THE_OTHER], lines)

    def _run_all(self, words: Sequence[str], lines: Sequence[str]) -> list[Said]:
        done = self._run(words, json.dumps(lines))
        assert done.returncode == 0, done.stdout
        return [Said(*said) for said in json.loads(done.stdout)]

    def python(self, program: str, *words: str) -> Said:
        """Run a program of Debian's Python, with its libraries to import."""
        done = self._run([PYTHON, "-c", program, *words], "")
        return Said(done.stdout, done.returncode)

    def _run(self, words: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
            words,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{COMMANDS}:{LIBRARIES}",
                "GANETI_ROOTDIR": str(self.root),
                "GANETI_HOSTNAME": self.root.name,
                "GANTRY_ROOT": str(self.root),
            },
            cwd=self.root.parent,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def ask(self, method: str, *args: Any) -> Any:
        """Ask the coordinator as a client does, without a socket."""
        return self.wait_for(self.cluster.master.luxi(method, *args))

    def wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have the cluster's thread do something; return what comes of it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextmanager
def served_cluster(folder: Path) -> Iterator[Served]:
    """Have a cluster of three nodes answer on a socket; ``folder`` is for its files."""
    with served_clusters(folder) as (served,):
        yield served


@contextmanager
def served_clusters(*folders: Path, nodes: int = 3) -> Iterator[list[Served]]:
    """Have clusters that can send disks to one another answer on a socket each."""
    ready, over = threading.Event(), asyncio.Event()
    served: list[Served] = []
    failures: list[Exception] = []
    loop = HurriedLoop()

    async def serve() -> None:
        bridge = FakeBridge()
        async with AsyncExitStack() as stack:
            for folder in folders:
                cluster = await stack.enter_async_context(
                    simulated_cluster(nodes=nodes, bridge=bridge)
                )
                served.append(await _serve(stack, folder / "alpha", cluster))
            loop.is_busy = lambda: any(_has_work(each.cluster) for each in served)
            ready.set()
            await over.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        except Exception as error:  # noqa: BLE001 - shown in the other thread
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        if not failures:
            yield served
    finally:
        if served:
            served[0].loop.call_soon_threadsafe(over.set)
        thread.join()
    if failures:
        raise failures[0]


def _has_work(cluster: SimulatedCluster) -> bool:
    """Tell whether any job of a cluster is under way, and waits for nobody outside."""
    queue = cluster.master.running.queue
    live = (number for number, job in cluster.state.jobs.items() if not job.status.is_final)
    return any(not _waits_for_a_visitor(queue.find(number)) for number in live)


def _waits_for_a_visitor(job: Job | None) -> bool:
    """Tell whether the last that a job said is where it can be visited."""
    said = [op.log[-1] for op in job.ops if op.log] if job else []
    return bool(said) and said[-1].kind in (DELAY_TEST, QUEUE_TEST)


async def _serve(stack: AsyncExitStack, root: Path, cluster: SimulatedCluster) -> Served:
    sockets = root / "var/run/ganeti/socket"
    sockets.mkdir(parents=True)
    (sockets / "ganeti-query").symlink_to("ganeti-master")
    ours = Paths(str(root)).luxi_socket
    ours.parent.mkdir(parents=True)
    ours.symlink_to(sockets / "ganeti-master")
    server = LuxiServer(sockets / "ganeti-master")
    await server.start(cluster.master.running.luxi)
    stack.push_async_callback(server.stop)
    return Served(root, cluster, asyncio.get_running_loop())
