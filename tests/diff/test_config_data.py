"""Debian's own library reads the configuration that we print, and finds in it what there is."""

import json
import subprocess

from coordinator.queries.config_data import config_data
from tests.diff.debian_ganeti import COMMANDS, LIBRARIES, PYTHON, needs_ganeti
from tests.unit.queries.test_config_data import DISK, MIRRORED, WEB1

pytestmark = needs_ganeti

READ = """
import json, sys
from ganeti import objects

data = objects.ConfigData.FromDict(json.load(sys.stdin))
data.UpgradeConfig()
cluster, (web1, disk) = data.cluster, sys.argv[1:]
instance = data.instances[web1]
print(json.dumps({
    "cluster": cluster.cluster_name,
    "memory": cluster.FillBE(instance)["maxmem"],
    "kernel": cluster.FillHV(instance)["kernel_path"],
    "volumes": [list(child.logical_id) for child in data.disks[disk].children],
    "nodes": sorted(node.name for node in data.nodes.values() if not node.offline),
}))
"""


def test_debians_library_reads_the_configuration() -> None:
    done = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [PYTHON, "-c", READ, WEB1.uuid, DISK.uuid],
        env={"PYTHONPATH": f"{COMMANDS}:{LIBRARIES}"},
        input=json.dumps(config_data(MIRRORED)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "cluster": "test",
        "memory": 256,
        "kernel": "/boot/vmlinuz",
        "volumes": [["vg", "d.data"], ["vg", "d.meta"]],
        "nodes": ["alpha", "beta"],
    }
