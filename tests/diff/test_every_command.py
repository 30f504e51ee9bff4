"""Each of Debian's gnt-* commands, on our socket: it works, or is refused by name."""

import shlex
import sys
from collections.abc import Iterator

import pytest

from common.model.backing import LvmBacking
from common.names import MiB
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.ganeti.opcodes import opcodes
from noded.storage.lvm.volumes import VolumeReport
from tests.diff.debian_ganeti import Said, needs_ganeti, options_of_commands, served_cluster
from tests.support.image import GROUP

pytestmark = needs_ganeti

# Given in this order to one cluster. After the colon stands what a refusal names: an opcode or
# a LUXI method that is not supported yet, or other words of ours. Nothing: the command works.
LINES = """
gnt-instance add -t sharedfile --disk 0:size=1G --file-storage-dir fast -B memory=128M -o noop \
    --no-install -n beta guest:
gnt-backup export --long-sleep -n gamma guest:
gnt-backup import -t sharedfile -g default -I hail --file-driver loop --src-node gamma \
    --file-storage-dir slow --src-dir guest -s 1G -O release=new new:
gnt-instance remove -f new:
gnt-backup list:
gnt-backup list-fields:
gnt-backup remove guest:
gnt-cluster activate-master-ip: No address goes with the mastership
gnt-cluster add-tags blue:
gnt-cluster deactivate-master-ip --yes: No address goes with the mastership
gnt-cluster info:
gnt-cluster list-tags:
gnt-cluster master-ping:
gnt-cluster modify --maintain-node-health yes:
gnt-cluster modify --max-running-jobs 15:
gnt-cluster queue info:
gnt-cluster redist-conf:
gnt-cluster search-tags blue:
gnt-cluster remove-tags blue:
gnt-cluster rename -f elsewhere:
gnt-cluster rename -f greek.example.com:
gnt-cluster repair-disk-sizes:
gnt-cluster show-ispecs-cmd:
gnt-cluster verify:
gnt-cluster verify-disks:
gnt-cluster version:
gnt-cluster watcher info:
gnt-debug delay -n beta --no-locks 0:
gnt-debug delay --interruptible -l 0.1:
gnt-debug iallocator --dir in -m allocate --disks 1024 -o none new:
gnt-debug iallocator --dir out -m multi-allocate -I hail --disks 1024 -t sharedfile new:
gnt-debug iallocator --dir out -m node-evacuate -I hail guest:
gnt-debug locks:
gnt-debug submit-job job.json:
gnt-debug submit-job --timing-stats --op-repeat 2 --job-repeat 2 job.json:
gnt-debug test-jobqueue:
gnt-debug test-osparams --os-parameters-secret a=b:
gnt-filter add --action 'RATE_LIMIT 5' --predicates '[["opcode", ["=", "OP_ID", "none"]]]':
gnt-filter replace --action CONTINUE --reason tried 00000000-0000-4000-8000-000000000000:
gnt-filter info 00000000-0000-4000-8000-000000000000:
gnt-filter list:
gnt-filter list-fields:
gnt-filter delete 00000000-0000-4000-8000-000000000000:
gnt-group add --ipolicy-vcpu-ratio 2 elsewhere:
gnt-group add-tags default blue:
gnt-group assign-nodes elsewhere gamma:
gnt-group assign-nodes default gamma:
gnt-group evacuate elsewhere:
gnt-group info:
gnt-group list:
gnt-group list-fields:
gnt-group list-tags default:
gnt-group modify --alloc-policy last_resort elsewhere:
gnt-group remove-tags default blue:
gnt-group rename elsewhere usual:
gnt-group show-ispecs-cmd default:
gnt-group remove usual:
gnt-instance activate-disks guest:
gnt-instance add -t sharedfile -s 1G -o debian+stable -O mirror=near \
 --os-parameters-private root_password=sesame --no-start -n beta installed:
gnt-instance modify -t ext -e provider=shelf,row=7 installed:
gnt-instance add -t sharedfile -s 1G -o debian+sarge --no-start -n beta other: declares no variant
gnt-instance add -t sharedfile -s 1G -o debian+sarge --force-variant --no-start -n beta other:
gnt-instance add -t plain --disk 0:adopt=old-server -o noop --no-install -n beta adopted:
gnt-instance remove -f adopted:
gnt-instance add-tags guest blue:
gnt-instance batch-create batch.json:
gnt-instance change-group guest: one group of nodes
gnt-instance console --show-cmd guest:
gnt-instance deactivate-disks guest: runs and uses its disks
gnt-instance failover -f guest:
gnt-instance grow-disk guest 0 1G:
gnt-instance info guest:
gnt-instance list:
gnt-instance list-fields:
gnt-instance list-tags guest:
gnt-instance migrate -f guest:
gnt-instance modify -B memory=256M --net add:link=br0 -H acpi=false guest:
gnt-instance move -f -n gamma guest: need not be copied
gnt-instance reboot guest:
gnt-instance recreate-disks guest: runs; stop it first
gnt-instance reinstall -f -o noop guest: runs; stop it first
gnt-instance remove-tags guest blue:
gnt-instance rename -f --no-name-check guest visitor:
gnt-instance rename -f --no-name-check visitor guest:
gnt-instance replace-disks -a guest: one copy only
gnt-instance shutdown guest:
gnt-instance reinstall -f -o debian+stable --os-parameters-secret root_password=sesame guest:
gnt-instance startup guest:
gnt-job archive 1:
gnt-job autoarchive all:
gnt-job cancel 9999: no job 9999
gnt-job change-priority --priority=high 9999: no job 9999
gnt-job info 2:
gnt-job list:
gnt-job list-fields:
gnt-job wait 2:
gnt-job watch 2:
gnt-network add --network 192.0.2.0/24 net:
gnt-network add-tags net blue:
gnt-network connect --nic-parameters mode=bridged,link=br0 net default:
gnt-network disconnect net:
gnt-network connect --nic-parameters mode=bridged,link=br0 net:
gnt-network disconnect net default:
gnt-network info net:
gnt-network list:
gnt-network list-fields:
gnt-network list-tags net:
gnt-network modify --gateway 192.0.2.1 net:
gnt-network remove-tags net blue:
gnt-network remove net:
gnt-node add-tags beta blue:
gnt-node evacuate -f -I hail gamma:
gnt-node failover -f beta:
gnt-node health: (unavail)
gnt-node info beta:
gnt-node list:
gnt-node list-fields:
gnt-node list-storage:
gnt-node list-tags beta:
gnt-node migrate -f beta:
gnt-node modify -D yes gamma:
gnt-node modify-storage --allocatable yes beta lvm-pv sda: sda
gnt-node power status beta: (unavail)
gnt-instance remove -f installed:
gnt-instance remove -f other:
gnt-instance remove -f guest:
gnt-instance remove -f batch:
gnt-node remove-tags beta blue:
gnt-node repair-storage beta lvm-vg xenvg: xenvg
gnt-node restricted-command uptime beta: does not run
gnt-node volumes:
gnt-os diagnose:
gnt-os info:
gnt-os list:
gnt-os modify --os-parameters a=b --os-parameters-private c=d --hidden=yes none:
gnt-storage diagnose: ExtStorage providers
gnt-storage info: ExtStorage providers
gnt-node remove gamma:
gnt-node powercycle --yes beta:
""".strip().splitlines()

BATCH = """[{
    "instance_name": "batch", "disk_template": "sharedfile", "mode": "create", "os_type": "noop",
    "disks": [{"size": 1024}], "nics": [], "no_install": true, "start": false
}]"""
FILES = {"batch.json": BATCH, "job.json": '[{"OP_ID": "OP_TEST_DUMMY", "result": 1}]'}

NOT_GIVEN = {
    "gnt-cluster command": "runs ssh",
    "gnt-cluster copyfile": "runs ssh",
    "gnt-cluster destroy": "removes files of this machine",
    "gnt-cluster epo": "asks for helpers of this machine",
    "gnt-cluster getmaster": "reads files of this machine",
    "gnt-cluster init": "writes files of this machine",
    "gnt-cluster master-failover": "starts daemons of this machine",
    "gnt-cluster renew-crypto": "writes files of this machine",
    "gnt-cluster upgrade": "installs software",
    "gnt-debug metad": "asks a daemon that we do not have",
    "gnt-debug wconfd": "asks a daemon that we do not have",
    "gnt-node add": "runs ssh",
    "gnt-node list-drbd": "asks confd of this machine",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Said]]:
    folder = tmp_path_factory.mktemp("ganeti")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with served_cluster(folder) as served:
        there = served.cluster.machines["beta"].volumes.groups[GROUP].volumes
        there["old-server"] = VolumeReport(LvmBacking(group=GROUP, name="old-server"), MiB(64), "u")
        lines = [line.rpartition(":")[0] for line in LINES]
        yield dict(zip(LINES, served.gnt_all(lines), strict=True))


def test_no_command_is_forgotten() -> None:
    given = {" ".join(shlex.split(line.rpartition(":")[0])[:2]) for line in LINES}
    assert sorted([*given, *NOT_GIVEN]) == sorted(options_of_commands())


@pytest.mark.parametrize("line", LINES)
def test_it_works_or_is_refused_by_name(told: dict[str, Said], line: str) -> None:
    said, name = told[line], line.rpartition(":")[2].strip()
    assert "Traceback" not in said.text, said.text
    if not name:
        assert said.code == 0, said.text
        return
    assert said.code != 0, said.text
    if name.startswith("OP_"):
        assert name in opcodes().keys() - CATALOGUE.keys(), "it is supported now; have it work"
        name += " is Ganeti's; it is known, and not supported yet"
    assert name in said.text


def test_what_became_of_each_is_told_in_a_table(
    told: dict[str, Said], capsys: pytest.CaptureFixture[str]
) -> None:
    became = {command: f"not given here: it {why}" for command, why in NOT_GIVEN.items()}
    for line, said in told.items():
        command = " ".join(shlex.split(line.rpartition(":")[0])[:2])
        works = said.code == 0 or became.get(command) == "works"
        last = (said.text.strip().splitlines() or [""])[-1]
        became[command] = "works" if works else f"refused: {last[:100]}"
    working = sum(what == "works" for what in became.values())
    rows = [f"  {command:32} {what}" for command, what in sorted(became.items())]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *rows, f"  {working} of {len(became)} work", ""]))
    assert became.keys() == options_of_commands().keys()
