"""A mirrored guest goes on when a device below its volumes disappears, and is mended live."""

from collections.abc import Iterator

import pytest

from tests.lab.leftovers import leftovers
from tests.lab.mirrored import make, remove
from tests.lab.stage import Stage, on_request, said

SPARE = "lab-spare"
ADD = f"""set -e
truncate --size 200M /srv/spare
dmsetup create {SPARE} --table "0 409600 linear $(losetup --find --show /srv/spare) 0"
pvcreate --yes --quiet /dev/mapper/{SPARE}
vgextend --yes --quiet gantry /dev/mapper/{SPARE}"""
LOSE = f"dmsetup wipe_table --force --noflush --nolockfs {SPARE}"
TAKE_AWAY = f"""vgreduce --yes --removemissing --force gantry
vgreduce --yes gantry /dev/mapper/{SPARE}
dmsetup remove --force {SPARE}; losetup --detach-all; rm -f /srv/spare"""
USUAL = "gamma lvm-pv /dev/mapper/lab-disk"


@pytest.fixture
def two(stage: Stage) -> Iterator[Stage]:
    """Have new volumes of gamma be on a second device, which can disappear."""
    try:
        stage.gamma.run(ADD)
        stage.alpha.run(f"gnt-node modify-storage --allocatable no {USUAL}")
        yield stage
    finally:
        remove(stage)
        said(stage.gamma, TAKE_AWAY)
        said(stage.alpha, f"gnt-node modify-storage --allocatable yes {USUAL}")
    assert not leftovers(stage)
    assert "[unknown]" not in stage.gamma.run("pvs --noheadings")


@on_request
def test_a_guest_loses_a_device_of_its_second_copy_and_gets_another_without_a_pause(
    two: Stage,
) -> None:
    ledger = make(two)
    alpha, beta, gamma = two.nodes
    process, before = ledger.process(beta), ledger.goes_on(beta)
    gamma.run(LOSE)
    ledger.becomes("degraded")
    ledger.goes_on(beta)
    assert "gnt-node repair-storage NODE lvm-vg gantry" in two.verify()
    assert "exit 0" in said(alpha, "gnt-node repair-storage --force gamma lvm-vg gantry")
    alpha.run(f"gnt-node modify-storage --allocatable yes {USUAL}")
    ledger.order("replace-disks --auto")
    ledger.becomes("whole")
    ledger.goes_on(beta)
    assert ledger.process(beta) == process
    with ledger.witness(beta) as told:
        ledger.order("failover --force --shutdown-timeout 0")
        ledger.goes_on(gamma)
    assert ledger.on_disk(gamma).whole_to >= told.last > before
