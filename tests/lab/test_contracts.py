"""The drivers keep their contracts inside nodes too: on their kernel, disks and network.

The suites are those of the checkout, seen through a mount; so are pytest and hypothesis, which
nodes do not have. All else is what is installed there. Those of mirrors, which start the most
programs, have a node for themselves. Left out are the fakes, switches in user space, whatever
starts hundreds of processes or another kernel, which takes minutes in user-mode Linux
(test_replica_crash, test_noded_process, test_hypervisor_linux, most of the real guests), and
test_luxi_server, which is about no node.
"""

import shlex
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from deploy.uml.node import Node
from deploy.uml.place import CHECKOUT
from tests.lab.stage import Stage, said
from tests.support.tiny_guest import kernel

SUITES = (
    "test_console_https.py", "test_guest_on_node.py", "test_network.py", "test_node_connection.py",
    "test_noded_joins.py", "test_noded_certificates.py", "test_noded_callers.py",
    "test_noded_calls.py", "test_noded_port.py", "test_openvswitch.py", "test_switched_frames.py",
    "test_replica.py", "test_replica_archive.py", "test_replica_disk.py", "test_replica_file.py",
    "test_state_https.py", "test_storage.py", "test_storage_files.py", "test_storage_places.py",
    "test_volumes.py", "test_volumes_apart.py",
    "test_hypervisor.py::test_started_guest_runs_and_is_reported[kvm]",
    "test_hypervisor.py::test_power_button_ends_a_guest_early[kvm]",
    "test_guest_moves.py::test_moved_guest_goes_on_where_it_was[kvm]",
    "test_guest_moves.py::test_cancelled_move_leaves_the_guest[kvm]",
    "test_hypervisor_kvm.py::test_disk_in_use_is_not_shared_by_accident",
    "test_hypervisor_kvm.py::test_nics_are_plugged_into_taps",
    "test_tiny_guest.py::test_what_it_says_is_on_its_disk_when_it_is_killed",
)  # fmt: skip
MIRRORS = (
    "test_mirrors.py", "test_mirrors_anew.py", "test_mirrors_apart.py",
    "test_mirrors_left_over.py",
)  # fmt: skip
MOUNTED = {"/mnt/checkout": CHECKOUT, "/mnt/packages": Path(pytest.__file__).parents[1]}
PYTEST = (
    "import sys; sys.path.append('/mnt/packages'); import pytest; "  # after what is installed
    "sys.exit(pytest.main(sys.argv[1:]))"
)
ENVIRONMENT = (
    "GANTRY_TEST_GROUP=gantry PYTHONDONTWRITEBYTECODE=1 "
    "HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis"
)
END_S = 1800  # on two idle processors six minutes


@pytest.fixture
def equipped(stage: Stage) -> Iterator[Stage]:
    """Beta and gamma see the checkout, and cannot write to it."""
    kernel()  # is assembled now: nodes have no assembler
    nodes = (stage.beta, stage.gamma)
    for (there, here), node in product(MOUNTED.items(), nodes):
        node.run(f"mkdir {there} && mount -t hostfs -o ro,{here} {here.name} {there}")
    yield stage
    for there, node in product(MOUNTED, nodes):
        node.run(f"umount {there} && rmdir {there}")


def test_contracts_are_kept_inside_nodes(equipped: Stage) -> None:
    """Both ends of each mirror are on one node; they talk over its loopback device."""
    with ThreadPoolExecutor() as both:
        told = both.map(keeps, (equipped.beta, equipped.gamma), (MIRRORS, SUITES))
    for text in told:
        assert "exit 0" in text.splitlines(), text
        assert "skipped" not in text, text


def keeps(node: Node, suites: Iterable[str]) -> str:
    """Return what pytest says of suites on a node, and its exit code as the last line."""
    chosen = " ".join(shlex.quote(f"tests/contract/{suite}") for suite in suites)
    return said(
        node,
        f"cd /mnt/checkout && {ENVIRONMENT} timeout {END_S} /opt/gantry/bin/python -c "
        f"{shlex.quote(PYTEST)} -q -p no:cacheprovider --durations=10 "
        f"-k 'not fake and not netdev' {chosen}",
        seconds=END_S + 30,
    )
