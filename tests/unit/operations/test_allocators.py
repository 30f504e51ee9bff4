"""Which allocators are asked, and where programs are found."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NotFound
from common.model.cluster import Cluster
from common.names import ClusterId, ClusterName, NodeId
from coordinator.operations.placement.allocators import (
    RequestType,
    allocators_for,
    check_name,
    find_program,
)

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("a"), default_iallocator="hail",
    default_iallocators={"allocate": ("one", "two"), "relocate": ()},
)  # fmt: skip


def test_the_one_named_is_asked_and_no_other() -> None:
    assert allocators_for(CLUSTER, RequestType.ALLOCATE, "mine") == ("mine",)


@pytest.mark.parametrize("named", [None, "", "."])
def test_else_the_defaults_for_the_request_in_order(named: str | None) -> None:
    assert allocators_for(CLUSTER, RequestType.ALLOCATE, named) == ("one", "two")
    assert allocators_for(CLUSTER, RequestType.EVACUATE, named) == ("hail",)


def test_where_there_is_none_one_has_to_be_named() -> None:
    with pytest.raises(InvalidRequest, match=r"Name a node, or an allocator.*“relocate”"):
        allocators_for(CLUSTER, RequestType.RELOCATE, None, instead="a node")
    nothing = replace(CLUSTER, default_iallocator="")
    with pytest.raises(InvalidRequest, match="Name an allocator with -I"):
        allocators_for(nothing, RequestType.EVACUATE, None)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/bin/sh", "-x", "a b", "a\0", "x" * 300])
def test_paths_and_options_are_no_names(name: str) -> None:
    with pytest.raises(InvalidRequest, match="is no name of an allocator"):
        check_name(name)


def test_the_first_program_of_a_name_wins_and_ours_before_ganetis(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for directory, names in ((first, ["a"]), (second, ["a", "b", "hail"])):
        directory.mkdir()
        for name in names:
            (directory / name).touch(0o755)
    (first / "b").touch(0o644)  # cannot be run
    (first / "c").mkdir()
    path = (first, None, second)
    assert find_program("a", path) == first / "a"
    assert find_program("b", path) == second / "b"
    assert find_program("hail", path) is None
    assert find_program("hail", (second, None)) == second / "hail"
    with pytest.raises(NotFound, match=r"no allocator “c”.*looked for in .*/1, .*/2"):
        find_program("c", path)
