"""A lab of three nodes for all stories of a process; each finds it healthy and leaves it so.

With GANTRY_LAB set, the lab of that name is used and stays up; else one is made, and removed.
"""

import logging
import os
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

from deploy.uml import cluster, kernel, network
from deploy.uml.cache import making
from deploy.uml.command import Trouble
from deploy.uml.lab import Lab
from deploy.uml.place import Place, place
from tests.lab.leftovers import leftovers
from tests.lab.mirrored import Ledger, make, remove
from tests.lab.stage import Stage

OWN = "lab-test-"  # and the number of the process that made it
FAILED = pytest.StashKey[bool]()

log = logging.getLogger(__name__)
logging.getLogger("tests.lab").setLevel(logging.INFO)  # what was said is shown where it matters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have what keeps two processors busy come last, when other processes have ended."""
    items.sort(key=lambda story: story.path == Path(__file__).with_name("test_contracts.py"))


def pytest_runtest_setup() -> None:
    if reason := why_not():  # here, as pytest then shows one line for all stories
        pytest.skip(f"NO STORY OF THE LAB WAS PLAYED. {reason}")


@cache
def why_not() -> str:
    """Say why there can be no lab on this machine; empty if there can."""
    if os.geteuid() != 0:
        return "Only root can make a network namespace."
    try:
        with making(log.info) as work:
            kernel.choose(work, log.info)
    except Trouble as trouble:
        return str(trouble)
    return network.why_not(Place(f"lab-trial-{os.getpid()}"))


@pytest.fixture(scope="package")  # other tests are run afterwards
def standing() -> Iterator[Stage]:
    """Give a story that harms nobody its nodes."""
    if "GANTRY_LAB" in os.environ:
        lab = Lab(place())
        cluster.form(lab.up(3, log.info), log.info)
        yield Stage(lab)
        return
    remove_abandoned()
    lab = Lab(Place(f"{OWN}{os.getpid()}"))
    try:
        cluster.form(lab.up(3, log.info), log.info)
        yield Stage(lab)
    finally:
        lab.clean(log.info)


def remove_abandoned() -> None:
    """Remove labs of test runs that were killed."""
    for directory in Path(tempfile.gettempdir()).glob(f"{OWN}*"):
        if not Path("/proc", directory.name.removeprefix(OWN)).exists():
            Lab(Place(directory.name)).clean(log.info)


@pytest.fixture
def stage(standing: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Give a story its nodes; afterwards see that the cluster is as healthy as before."""
    if standing.ruined_by:
        pytest.fail(f"The lab has not been healthy since {standing.ruined_by}.")
    standing.ruined_by = request.node.name
    yield standing
    if request.node.stash.get(FAILED, False):
        standing.log_journals()
    network.heal(standing.lab.place)
    standing.restore()
    standing.ruined_by = ""


@pytest.fixture(scope="module")
def made(standing: Stage) -> Iterator[Ledger]:
    """Make a mirrored guest for all stories of a file."""
    ledger = make(standing)
    yield ledger
    remove(standing)
    assert not leftovers(standing)


@pytest.fixture
def ledger(made: Ledger, stage: Stage) -> Iterator[Ledger]:
    """Give a story that guest; afterwards both its copies are good, and nothing is left over."""
    yield made
    made.order("activate-disks --wait-for-sync")
    assert made.state == "whole"
    assert not leftovers(stage)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report
