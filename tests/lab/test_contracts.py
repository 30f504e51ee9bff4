"""The drivers keep their contracts inside a node too: on its kernel, its disks, its network.

The suites are those of the checkout, seen through a mount; so are pytest and hypothesis, which
nodes do not have. All else is what is installed there. Left out are the fakes, whatever starts
hundreds of processes or another kernel, which takes minutes in user-mode Linux
(test_replica_crash, test_noded_process, test_hypervisor_linux, most of the real guests), and
test_luxi_server, which is about no node.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.uml.place import CHECKOUT
from tests.lab.stage import Stage, said
from tests.support.tiny_guest import kernel

SUITES = (
    "test_console_https.py", "test_guest_on_node.py", "test_network.py", "test_node_connection.py",
    "test_noded_joins.py", "test_noded_callers.py", "test_noded_calls.py", "test_noded_port.py",
    "test_replica.py", "test_replica_disk.py", "test_replica_file.py", "test_state_https.py",
    "test_storage.py", "test_storage_files.py", "test_volumes.py",
    "test_hypervisor.py::test_started_guest_runs_and_is_reported[kvm]",
    "test_hypervisor.py::test_power_button_ends_a_guest_early[kvm]",
    "test_guest_moves.py::test_moved_guest_goes_on_where_it_was[kvm]",
    "test_guest_moves.py::test_cancelled_move_leaves_the_guest[kvm]",
    "test_hypervisor_kvm.py::test_disk_in_use_is_not_shared_by_accident",
    "test_hypervisor_kvm.py::test_nics_are_plugged_into_taps",
    "test_tiny_guest.py::test_what_it_says_is_on_its_disk_when_it_is_killed",
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
END_S = 600  # it takes about 100 s of processor time
MIRRORS_END_S = 900  # most of it is waiting for one end to miss the other


@pytest.fixture
def equipped(stage: Stage) -> Iterator[Stage]:
    """Gamma sees the checkout, and cannot write to it."""
    kernel()  # is assembled now: nodes have no assembler
    for there, here in MOUNTED.items():
        stage.gamma.run(f"mkdir {there} && mount -t hostfs -o ro,{here} {here.name} {there}")
    yield stage
    for there in MOUNTED:
        stage.gamma.run(f"umount {there} && rmdir {there}")


def test_contracts_are_kept_inside_a_node(equipped: Stage) -> None:
    run(equipped, *SUITES, seconds=END_S)


def test_mirrors_keep_their_contract_inside_a_node(equipped: Stage) -> None:
    """Both ends of each mirror are on this node; they talk over its loopback device."""
    run(equipped, "test_mirrors.py", seconds=MIRRORS_END_S)


def run(stage: Stage, *suites: str, seconds: float) -> None:
    chosen = " ".join(shlex.quote(f"tests/contract/{suite}") for suite in suites)
    text = said(
        stage.gamma,
        f"cd /mnt/checkout && {ENVIRONMENT} timeout {seconds} /opt/gantry/bin/python -c "
        f"{shlex.quote(PYTEST)} -q -p no:cacheprovider --durations=10 -k 'not fake' {chosen}",
        seconds=seconds + 30,
    )
    assert "exit 0" in text.splitlines(), text
    assert "skipped" not in text, text
