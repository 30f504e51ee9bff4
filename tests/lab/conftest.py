"""One lab of three nodes for all stories; each finds it healthy and leaves it so.

With GANTRY_LAB set, the lab of that name is used and stays up; else one is made, and removed.
"""

import logging
import os
from collections.abc import Iterator

import pytest

from deploy.uml import cluster, kernel, network
from deploy.uml.lab import Lab
from deploy.uml.place import Place, place
from tests.lab.stage import Stage

log = logging.getLogger(__name__)


@pytest.fixture(scope="session")
def standing() -> Iterator[Stage]:
    if os.geteuid() != 0:
        pytest.skip("NOT ROOT: no lab was made")
    kernel.ensure_kernel()
    if reason := kernel.why_not():
        pytest.skip(f"USER-MODE LINUX CANNOT RUN HERE, so no lab story was played: {reason}")
    kept = "GANTRY_LAB" in os.environ
    lab = Lab(place() if kept else Place("gantry-lab-test"))
    try:
        nodes = lab.up(3, log.info)
        cluster.form(nodes, log.info)
        yield Stage(lab)
    finally:
        if not kept:
            lab.clean()


@pytest.fixture
def stage(standing: Stage) -> Iterator[Stage]:
    """Give a story its nodes; afterwards see that the cluster is as healthy as before.

    Raises:
        Trouble: it is not, or not soon.
    """
    yield standing
    network.heal(standing.lab.place)
    standing.restore()
