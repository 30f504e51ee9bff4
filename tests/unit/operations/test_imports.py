"""Ganeti's clients import an instance by creating it."""

import pytest

from common.errors import InvalidRequest
from common.names import InstanceName
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.base import read_operation
from coordinator.operations.devices import DiskRequest
from coordinator.operations.registry import load_all

load_all()

# As gnt-backup of Ganeti 3.0 sends it, but for what is null.
GANETIS = {
    "OP_ID": "OP_INSTANCE_CREATE", "mode": "import", "instance_name": "web1", "pnode": "alpha",
    "src_node": "beta", "src_path": "/var/lib/ganeti/export/web1", "disks": [{"size": 1024}],
    "nics": [], "hvparams": {}, "beparams": {}, "osparams": {}, "osparams_private": {},
    "osparams_secret": {}, "start": False, "force_variant": False, "wait_for_sync": True,
    "ip_check": True, "name_check": True, "conflicts_check": True, "tags": [], "compress": "none",
    "identify_defaults": True, "ignore_ipolicy": False, "forthcoming": False, "commit": False,
    "opportunistic_locking": False, "instance_communication": False, "dry_run": False,
    "debug_level": 0, "priority": 0,
}  # fmt: skip


def test_a_creation_by_import_is_an_import() -> None:
    assert read_operation(GANETIS) == ImportInstance(
        instance_name=InstanceName("web1"),
        pnode="alpha",
        src_node="beta",
        src_path="/var/lib/ganeti/export/web1",
        disks=(DiskRequest(size=1024),),
    )


def test_it_is_started_if_that_is_said_or_nothing_is_as_for_all_that_is_created() -> None:
    unsaid = {name: value for name, value in GANETIS.items() if name != "start"}
    for given, starts in ((GANETIS, False), (GANETIS | {"start": True}, True), (unsaid, True)):
        order = read_operation(given)
        assert isinstance(order, ImportInstance)
        assert order.start is starts


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"file_driver": "blktap"}, "file_driver of OP_INSTANCE_CREATE is Ganeti's"),
        ({"os_type": "debian"}, "os_type of OP_INSTANCE_CREATE is Ganeti's"),
        ({"colour": "blue"}, "no parameter “colour”"),
    ],
)
def test_what_an_import_does_not_do_is_refused_by_name(asked: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        read_operation(GANETIS | asked)
