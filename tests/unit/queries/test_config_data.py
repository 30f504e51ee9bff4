"""The configuration as a whole, as others may see it."""

import json

from msgspec.structs import replace

from common.model.backing import DrbdBacking, LvmBacking
from common.model.network import Network
from common.model.secret import CONFD_KEY, Secret
from common.model.template import DiskTemplate
from common.names import InstanceName, NetworkId, NetworkName, Port
from coordinator.queries.config_data import config_data
from coordinator.state.rows import Put
from tests.unit.queries.cluster import ALPHA, BETA, STATE, uuid

NETWORK = Network(uuid=NetworkId(uuid(500)), name=NetworkName("lan"), network="192.0.2.0/29")
WEB1 = STATE.config.instance(InstanceName("web1.example.com"))
DISK = STATE.config.disks[WEB1.disks[0]]
NIC = STATE.config.nics[WEB1.nics[0]]
MIRROR = DrbdBacking(
    data=LvmBacking(group="vg", name="d.data"), meta=LvmBacking(group="vg", name="d.meta"),
    port=Port(11000), minors={ALPHA.uuid: 0, BETA.uuid: 3}, secret="do not tell",
)  # fmt: skip
MIRRORED = STATE.apply([
    Put(replace(STATE.config.cluster, uid_pool=((70_000, 70_099),), hidden_os=("old",))),
    Put(replace(WEB1, disk_template=DiskTemplate.DRBD)),
    Put(replace(DISK, backing=MIRROR, nodes=(BETA.uuid, ALPHA.uuid))),
    Put(replace(NIC, ip="192.0.2.3", network=NETWORK.uuid)),
    Put(NETWORK),
    Put(Secret(id=CONFD_KEY, value="do not tell")),
])  # fmt: skip


def test_no_secret_is_in_it() -> None:
    text = json.dumps(config_data(MIRRORED))
    assert "d.data" in text
    assert "do not tell" not in text


def test_a_mirrored_disk_has_its_volumes_and_its_template() -> None:
    told = config_data(MIRRORED)["disks"][DISK.uuid]
    assert told["dev_type"] == "drbd"
    assert told["iv_name"] == "disk/0"
    assert told["logical_id"] == [BETA.uuid, ALPHA.uuid, 11000, 3, 0, None]
    data, meta = told["children"]
    assert (data["logical_id"], data["size"]) == (["vg", "d.data"], DISK.size)
    assert (meta["logical_id"], meta["size"]) == (["vg", "d.meta"], 128)


def test_addresses_that_are_taken_are_marked() -> None:
    (told,) = config_data(MIRRORED)["networks"].values()
    assert told["reservations"] == "10010001"  # the first and the last go to nobody


def test_everything_of_the_configuration_is_in_it_by_its_uuid() -> None:
    told, config = config_data(MIRRORED), MIRRORED.config
    for name, objects in (
        ("nodes", config.nodes), ("nodegroups", config.groups), ("instances", config.instances),
        ("disks", config.disks), ("networks", config.networks),
    ):  # fmt: skip
        assert told[name].keys() == set(objects), name
    nics = [nic["uuid"] for instance in told["instances"].values() for nic in instance["nics"]]
    assert sorted(nics) == sorted(config.nics)


def test_what_is_set_of_the_cluster_is_in_it() -> None:
    told = json.loads(json.dumps(config_data(MIRRORED)))["cluster"]
    assert (told["uid_pool"], told["hidden_os"]) == ([[70_000, 70_099]], ["old"])
