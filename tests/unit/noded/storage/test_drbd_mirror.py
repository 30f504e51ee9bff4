"""What a node is told of a mirrored disk, and whether it makes sense."""

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import FileBacking
from common.names import MiB, NodeId
from common.noderpc.disks import DiskSpec
from noded.storage.drbd.mirror import read_mirror
from noded.storage.drbd.module import Endpoint
from tests.support.pairs import SECRET, specs

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
DISK, _ = specs("gantry", ("192.0.2.1", "192.0.2.2"), (0, 7))


def test_each_node_reads_its_own_end() -> None:
    one, other = read_mirror(DISK, A), read_mirror(DISK, B)
    assert (one.minor, other.minor) == (0, 7)
    assert one.connection is not None
    assert other.connection is not None
    assert one.connection.own == other.connection.peer == Endpoint("192.0.2.1", 11042)
    assert one.connection.peer == other.connection.own
    assert one.resource == other.resource


def test_disk_with_one_copy_has_no_connection() -> None:
    assert read_mirror(replace(DISK, ends=DISK.ends[:1]), A).connection is None


def test_data_is_made_of_zeros_and_of_metadata_what_could_be_taken_for_a_disks() -> None:
    data, meta = read_mirror(DISK, A).new_volumes
    assert (data.zeros, meta.zeros) == (None, 1)


def test_secret_is_not_shown() -> None:
    assert SECRET not in repr(read_mirror(DISK, A))


@pytest.mark.parametrize(
    "disk",
    [
        replace(DISK, backing=FileBacking(path="/x", shared=False)),
        replace(DISK, id="../x"),
        replace(DISK, ends=DISK.ends[1:]),
        replace(DISK, ends=()),
        replace(DISK, ends=(*DISK.ends, replace(DISK.ends[1], node=C))),
        replace(DISK, backing=replace(DISK.backing, port=22)),
        replace(DISK, backing=replace(DISK.backing, secret="")),
        replace(DISK, backing=replace(DISK.backing, secret="x" * 65)),
        replace(DISK, size=MiB(4 << 20)),
        replace(DISK, parameters={"nonsense": 1}),
    ],
)
def test_nonsense_is_refused(disk: DiskSpec) -> None:
    with pytest.raises(InvalidRequest):
        read_mirror(disk, A)
