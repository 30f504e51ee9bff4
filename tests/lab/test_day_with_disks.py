"""One operator's day with disks: real volumes, mirrors and files, and nothing left at its end."""

from collections.abc import Iterator

import pytest

from common.model.disk import Disk
from common.names import NodeName
from deploy.uml.node import Node
from tests.lab.chaos.inspection import look
from tests.lab.leftovers import leftovers
from tests.lab.sizes_guest import PARAMETERS, put_files
from tests.lab.stage import Stage, on_request, said, until
from tests.lab.strays import Known, read, strays

BOOT_S = 240.0  # on an idle machine 20
BOOKS = "entered by an operator"  # what is on the disks of those that do not run
IDLE = "--no-start --no-nics -B memory=128,vcpus=1"
NAMES = ("ledger", "shop", "notes", "bazaar", "store")

pytestmark = on_request


@pytest.fixture
def day(stage: Stage) -> Iterator["Day"]:
    put_files(stage.lab)
    try:
        yield Day(stage)
    finally:
        said(stage.alpha, "gnt-backup remove shop")
        for name in NAMES:
            said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {name}")
        stage.gamma.run("lvremove --yes gantry/old-server 2>/dev/null || true")


def test_a_guest_that_runs_sees_what_is_done_to_its_disks_and_moves_with_them(day: "Day") -> None:
    day.does(
        "gnt-instance add -t drbd -n beta:gamma --disk 0:size=8M --disk 1:size=4M "
        f"--net 0:link=br0 -B memory=128,vcpus=1 -H kvm:{PARAMETERS} ledger"
    )
    day.sees("vda=8M vdb=4M")
    day.does("gnt-instance grow-disk ledger 0 8M")
    day.sees("vda=16M vdb=4M")
    day.does("gnt-instance modify --disk add:size=12M --hotplug ledger")
    day.sees("vda=16M vdb=4M vdc=12M")
    day.does_at_last("gnt-instance modify --force --disk 2:remove --hotplug ledger")
    day.sees("vda=16M vdb=4M")
    day.does("gnt-node migrate --force beta")
    assert day.field("ledger", "pnode") == "gamma"
    day.sees("vda=16M vdb=4M")
    day.does("gnt-node failover --force gamma")
    assert day.field("ledger", "pnode") == "beta"
    day.sees("vda=16M vdb=4M")
    day.is_in_order()
    day.ends("ledger")


def test_disks_of_what_is_stopped_become_others_and_go_elsewhere(day: "Day") -> None:
    alpha, beta, gamma = day.stage.nodes
    sizes = "--disk 0:size=8M --disk 1:size=4M"
    day.does(f"gnt-instance add -t drbd -n beta:gamma {sizes} {IDLE} ledger")
    day.does(f"gnt-instance add -t plain -n alpha --disk 0:size=8M {IDLE} shop")
    day.does(f"gnt-instance add -t file -n alpha --disk 0:size=8M {IDLE} notes")
    alpha.run(f"lvremove --yes {day.disk('shop').backing.where}")
    assert "ERROR" in day.stage.verify()
    day.does("gnt-instance recreate-disks shop")
    for name in ("shop", "notes"):
        day.writes(name)

    day.does("gnt-instance activate-disks --wait-for-sync ledger")
    assert [len(look(node).mirrors) for node in (beta, gamma)] == [2, 2]
    first, *_ = (minor for minor, _, role, _ in look(beta).mirrors if role.startswith("Primary"))
    beta.run(f"echo {BOOKS} | dd of=/dev/drbd{first} conv=notrunc,fsync")
    day.does("gnt-instance deactivate-disks ledger")
    assert [len(look(node).mirrors) for node in (beta, gamma)] == [0, 0]
    assert [day.reads("ledger", node) for node in (beta, gamma)] == [BOOKS, BOOKS]

    day.does("gnt-instance modify --force -t drbd -n beta shop")
    assert [day.reads("shop", node) for node in (alpha, beta)] == [BOOKS, BOOKS]
    day.does("gnt-instance modify --force -t plain shop")
    day.does("gnt-instance modify --force -t plain notes")
    assert day.reads("notes", alpha) == BOOKS
    day.does("gnt-instance move --force -n gamma shop")
    assert day.reads("shop", gamma) == BOOKS
    day.does("gnt-backup export -n beta shop")
    day.does("gnt-backup import --src-node beta --src-dir shop -n alpha bazaar")
    assert day.reads("bazaar", alpha) == BOOKS
    day.does("gnt-backup remove shop")

    gamma.run("lvcreate --yes -Wn -Zn -L 8M -n old-server gantry")
    gamma.run(f"echo {BOOKS} | dd of=/dev/gantry/old-server conv=fsync")
    gamma.run("lvchange -an gantry/old-server")
    day.does(f"gnt-instance add -t plain -n gamma --disk 0:adopt=old-server {IDLE} store")
    assert day.reads("store", gamma) == BOOKS
    day.is_in_order()
    day.ends(*NAMES)


class Day:
    """What an operator types, and what is to be seen of it on the nodes."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def does(self, command: str) -> None:
        """Type a command on the master, which has to succeed."""
        assert "exit 0" in said(self.stage.alpha, command, seconds=400).splitlines()

    def does_at_last(self, command: str) -> None:
        """Type a command again until it succeeds: a slow guest lets go of nothing in time."""
        until(
            lambda: "exit 0" in said(self.stage.alpha, command, seconds=400).splitlines(),
            f"“{command}” to succeed",
            BOOT_S,
        )

    def field(self, name: str, field: str) -> str:
        return self.stage.alpha.run(f"gnt-instance list --no-headers -o {field} {name}").strip()

    def sees(self, disks: str) -> None:
        """Wait until the guest that runs tells of just these disks, in a look begun after this."""
        node = self.stage.lab.node(self.field("ledger", "pnode"))
        path = f"/run/gantry/instances/{self.field('ledger', 'uuid')}/serial.log"
        looks = f"grep --text '^look .*[.]' {path} 2>/dev/null || true"
        before = len(node.run(looks).splitlines())

        def has_told() -> bool:
            told = node.run(looks).splitlines()[before + 1 :]
            return bool(told) and told[-1].strip().endswith(f": {disks}.")

        until(has_told, f"the guest to see {disks}", BOOT_S)

    def disk(self, name: str, number: int = 0) -> Disk:
        known = self._known()
        (instance,) = (each for each in known.instances if each.name == name)
        return known.disks_of(instance)[number]

    def writes(self, name: str) -> None:
        """Put down on the first disk of one that does not run what is to be there later."""
        node = self.stage.lab.node(self.field(name, "pnode"))
        self._on(node, self.disk(name), f"echo {BOOKS} | dd conv=notrunc,fsync of=")

    def reads(self, name: str, node: Node, number: int = 0) -> str:
        """Return the first line of what a node has of a disk that nobody uses."""
        return self._on(node, self.disk(name, number), "head -n 1 ").strip()

    def ends(self, *names: str) -> None:
        """Remove all instances that there are; nothing of them is left."""
        for name in names:
            self.does(f"gnt-instance remove --force --shutdown-timeout 0 {name}")
        self.is_in_order()
        for node in self.stage.nodes:
            assert not node.run("lvs --noheadings gantry")

    def is_in_order(self) -> None:
        """See that no node has more than the configuration knows, or less."""
        found = {NodeName(node.name): look(node) for node in self.stage.nodes}
        assert strays(self._known(), found) == []
        assert leftovers(self.stage) == {}
        told = self.stage.verify()
        assert "ERROR" not in told
        assert "WARNING" not in told

    def _known(self) -> Known:
        return read(look(self.stage.alpha).rows)

    def _on(self, node: Node, disk: Disk, command: str) -> str:
        """Run a command, which a path is put after, on a file or on a volume that is active."""
        where = disk.backing.where
        if where.startswith("/"):
            return node.run(f"{command}{where}")
        node.run(f"lvchange -ay -K {where}")
        try:
            return node.run(f"{command}/dev/{where}")
        finally:
            node.run(f"lvchange -an {where}")
