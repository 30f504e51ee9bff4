"""Which drivers a node has."""

from pathlib import Path
from typing import get_args

from common.model.backing import Backing
from common.model.pool_kind import PoolKind
from common.names import NodeId
from common.paths import Paths
from noded.exports.directory import ExportDirectory
from noded.storage.drivers import storages


def test_whatever_a_disk_is_a_node_has_a_driver_for_it(tmp_path: Path) -> None:
    paths = Paths(str(tmp_path))
    drivers = storages(paths, ExportDirectory(paths.exports), lambda: NodeId("alpha"))
    assert set(drivers.by_backing) == set(get_args(Backing))
    assert set(drivers.by_pool) == set(PoolKind)
