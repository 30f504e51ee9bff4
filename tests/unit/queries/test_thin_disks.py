"""Nodes are asked what disks take only of those that may take less than their size."""

from msgspec.structs import replace

from common.model.backing import Qcow2Backing
from common.model.disk import Disk
from coordinator.disks.kinds import thin_on
from coordinator.state.rows import Put
from tests.unit.queries.cluster import ALPHA, BETA, GAMMA, STATE, STORAGE

EVERYWHERE = {ALPHA.uuid, BETA.uuid, GAMMA.uuid}


def test_images_of_the_instances_asked_about_are_and_no_others() -> None:
    config = STATE.config
    assert thin_on(config, EVERYWHERE) == {}
    first, second = config.disks_of(config.instance("db1.example.com"))
    (on_gamma,), (on_beta,) = (
        config.disks_of(config.instance(name)) for name in ("mail", "web1.example.com")
    )
    config = config.apply(image(disk) for disk in (second, on_gamma, on_beta))
    told = thin_on(config, EVERYWHERE)
    assert {node: [each.id for each in specs] for node, specs in told.items()} == {
        ALPHA.uuid: [second.uuid], BETA.uuid: [on_beta.uuid],
    }  # fmt: skip
    assert first.uuid not in {each.id for each in told[ALPHA.uuid]}
    assert list(thin_on(config, {BETA.uuid})) == [BETA.uuid]


def image(disk: Disk) -> Put:
    path = f"{STORAGE}/{disk.uuid}.qcow2"
    return Put(replace(disk, backing=Qcow2Backing(path=path, shared=True)))
