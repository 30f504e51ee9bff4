"""An operator's day, once by Debian's gnt-* commands and once by ours: both leave the same.

What is typed is the same, word for word. Each line has to work.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from common.noderpc.programs import OobCommand
from coordinator.operations.cluster.modify import ModifyCluster
from tests.diff.debian_ganeti import Said, Served, needs_ganeti, served_clusters
from tests.support.shelf import Shelf

pytestmark = needs_ganeti

DAY = """
gnt-cluster add-tags production
gnt-cluster modify -B minmem=128M,maxmem=256M -H kvm:acpi=true --max-running-jobs 15
gnt-cluster deactivate-master-ip --yes
gnt-cluster activate-master-ip
gnt-cluster master-ping
gnt-instance add -t sharedfile -s 1G -o noop --no-install -n alpha --no-nics portal
gnt-group add annex
gnt-group modify --alloc-policy last_resort annex
gnt-group assign-nodes annex gamma delta
gnt-instance change-group --to annex portal
gnt-group evacuate --to default annex
gnt-group assign-nodes default gamma delta
gnt-group rename annex attic
gnt-group remove attic
gnt-network add --network 198.51.100.0/24 --gateway 198.51.100.1 lan
gnt-network modify --add-reserved-ips 198.51.100.2 lan
gnt-network connect --nic-parameters mode=bridged,link=br0 lan default
gnt-instance add -t drbd -s 1G -o noop --no-install -n beta:gamma --net 0:network=lan,ip=pool shop
gnt-instance add -t file -s 1G -o noop --no-install -n beta --net 0:link=br0 depot
gnt-instance add-tags shop web
gnt-instance list
gnt-instance info shop
gnt-instance migrate -f shop
gnt-instance replace-disks -s shop
gnt-instance replace-disks -n alpha shop
gnt-instance replace-disks -a shop
gnt-instance failover -f shop
gnt-instance grow-disk shop 0 512M
gnt-instance modify -B maxmem=192M -H serial_console=false shop
gnt-instance shutdown shop
gnt-instance activate-disks shop
gnt-instance deactivate-disks shop
gnt-instance modify --disk add:size=512M shop
gnt-instance modify --force --disk 1:remove shop
gnt-instance modify --net add:link=br0 shop
gnt-instance modify --net 1:modify,link=br0,ip=203.0.113.7 shop
gnt-instance modify --net 1:remove shop
gnt-instance modify --disk 0:modify,name=stock shop
gnt-instance startup shop
gnt-instance reboot shop
gnt-cluster verify-disks
gnt-instance move -f -n gamma depot
gnt-instance rename -f --no-name-check depot store
gnt-backup export -n alpha store
gnt-backup list
gnt-instance remove -f store
gnt-backup import -t file --src-node alpha -n gamma store
gnt-backup remove store
gnt-instance shutdown store
gnt-instance modify -t plain --no-wait-for-sync store
gnt-instance startup store
gnt-instance shutdown store
gnt-node modify -D yes beta
gnt-node migrate -f alpha
gnt-node modify -D no beta
gnt-node list-storage -t lvm-pv
gnt-node modify-storage --allocatable no gamma lvm-pv /dev/gantry
gnt-node modify-storage --allocatable yes gamma lvm-pv /dev/gantry
gnt-node volumes
gnt-node restricted-command tell beta gamma
gnt-instance remove -f store
gnt-instance replace-disks -n beta shop
gnt-instance migrate -f shop
gnt-node migrate -f gamma
gnt-cluster modify --node-parameters oob_program=/etc/gantry/out-of-band/switch
gnt-node health gamma
gnt-node modify --force -O yes gamma
gnt-node power -f off gamma
gnt-node power on gamma
gnt-node modify --force -O no gamma
gnt-node modify -C yes gamma
gnt-storage diagnose
gnt-storage info
gnt-filter replace --action PAUSE --predicates '[["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]]' \
 00000000-0000-4000-8000-000000000000
gnt-debug delay --submit 0
gnt-job change-priority --force --queued --priority=high
gnt-job cancel --force --queued
gnt-filter delete 00000000-0000-4000-8000-000000000000
gnt-cluster verify
gnt-job list
""".strip().splitlines()

KEPT = {  # what is compared, of each kind
    "instance": (
        "name pnode snodes disk_template admin_state status os tags disk.sizes nic.modes nic.links "
        "nic.ips nic.networks.names custom_beparams custom_hvparams be/maxmem be/minmem"
    ),
    "node": "name role group offline drained powered pinst_list sinst_list tags",
    "group": "name alloc_policy node_list pinst_list tags",
    "network": "name network gateway external_reservations free_count group_list inst_list",
    "cluster": "name tags max_running_jobs",
}


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Said], list[Said], Any]]:
    """What Debian's commands said, what ours said, and what they have left."""
    folder = tmp_path_factory.mktemp("day")
    with served_clusters(folder / "theirs", folder / "ours", nodes=4) as (theirs, ours):
        for served in (theirs, ours):
            _make_ready(served)
        said = theirs.gnt_all(DAY)
        by_us = ours.ours_all(DAY)
        yield said, by_us, (_left(theirs), _left(ours))


def _make_ready(served: Served) -> None:
    cluster = served.cluster
    served.wait_for(cluster.run(ModifyCluster(master_ip="192.0.2.100", master_netdev="eth0")))
    for machine in cluster.machines.values():
        machine.programs.commands["tell"] = "well\n"
        Shelf(machine.paths.providers()[0])
    answers = cluster.machines["alpha"].programs.answers
    answers[OobCommand.HEALTH, "gamma"] = '[["fan", "OK"]]'
    answers[OobCommand.POWER_STATUS, "gamma"] = '{"powered": true}'


def _left(served: Served) -> dict[str, Any]:
    canceled = ["==", "status", "canceled"]
    jobs = served.ask("Query", "job", ["summary", "priority"], canceled)
    return {
        what: served.ask("Query", what, fields.split(), None)["data"]
        for what, fields in KEPT.items()
    } | {"canceled": jobs["data"]}


@pytest.mark.parametrize("number", range(len(DAY)), ids=DAY)
def test_each_line_works_for_both(day: Any, number: int) -> None:
    for said in (day[0][number], day[1][number]):
        assert "Traceback" not in said.text, said.text
        assert said.code == 0, said.text


def test_both_leave_the_same(day: Any) -> None:
    by_debians, by_ours = day[2]
    assert by_ours == by_debians
    assert by_ours["instance"], "nothing is left that could differ"
    assert by_ours["canceled"] == [[(0, ["TEST_DELAY"]), (0, -10)]]
