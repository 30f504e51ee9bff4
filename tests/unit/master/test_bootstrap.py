"""What is wrong with a new cluster is said before anything is touched."""

import asyncio
from pathlib import Path

import pytest

from common.errors import InvalidRequest, NotFound, Unreachable
from common.names import ClusterName, NodeName
from common.paths import Paths
from coordinator.master.bootstrap import NewCluster, initialise


def begin(root: Path, allocator: str, **options: object) -> None:
    wanted = NewCluster(
        name=ClusterName("prod"), node=NodeName("alpha"), primary_ip="192.0.2.1",
        default_iallocator=allocator, default_iallocator_params=options,
    )  # fmt: skip
    asyncio.run(initialise(Paths(str(root)), wanted))


def test_a_cluster_does_not_begin_with_an_allocator_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no allocator “nosuch”"):
        begin(tmp_path, "nosuch")
    with pytest.raises(InvalidRequest, match="is no name of an allocator"):
        begin(tmp_path, "../sh")


def test_a_cluster_does_not_begin_with_options_that_allocators_do_not_have(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="“--mond” is no option"):
        begin(tmp_path, "hail", **{"--mond": True})


@pytest.mark.parametrize("allocator", ["hail", ""])
def test_the_built_in_allocator_is_always_there_and_none_will_do(
    tmp_path: Path, allocator: str
) -> None:
    with pytest.raises(Unreachable, match="gantry-noded has not been started"):
        begin(tmp_path, allocator)
