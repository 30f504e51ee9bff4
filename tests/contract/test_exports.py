"""What every store of exports promises, kept by the real one and by the fake."""

import asyncio
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pytest

from common.errors import InvalidRequest, NodeFailure, NotFound
from common.model.backing import DumpBacking
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import Access, DiskSpec
from noded.copies.device import claim
from noded.exports.directory import ExportDirectory
from noded.exports.fake import FakeExports
from noded.exports.interface import ExportStore

T = TypeVar("T")


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


def dump(name: str = "0", *, export: str = "web1", is_finished: bool = False) -> DiskSpec:
    return DiskSpec(
        id=DiskId("dddddddd-0000-4000-8000-00000000000a"),
        instance=InstanceId("11111111-0000-4000-8000-000000000001"), size=MiB(8),
        backing=DumpBacking(export=export, name=name, is_finished=is_finished),
    )  # fmt: skip


@pytest.fixture(params=["fake", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ExportStore:
    return FakeExports() if request.param == "fake" else ExportDirectory(tmp_path / "export")


def made(store: ExportStore, config: str = "[export]\n") -> None:
    run(store.ensure_present(dump()))
    run(store.finish("web1", config))


def test_an_export_is_seen_when_it_is_finished_and_not_before(store: ExportStore) -> None:
    run(store.ensure_present(dump("0")))
    run(store.ensure_present(dump("1")))
    assert run(store.exports()) == ()
    with pytest.raises(NotFound, match="no export web1"):
        run(store.show("web1"))
    run(store.finish("web1", "[export]\n"))
    run(store.finish("web1", "[export]\n"))
    assert run(store.exports()) == ("web1",)
    seen = run(store.show("web1"))
    assert (seen.name, seen.config, seen.dumps) == ("web1", "[export]\n", {"0": 8, "1": 8})
    assert run(store.find(dump("0", is_finished=True))) is not None
    assert run(store.find(dump("0"))) is None


def test_a_new_export_takes_the_place_of_the_one_before(store: ExportStore) -> None:
    made(store, "one")
    run(store.ensure_present(dump("other")))
    assert run(store.show("web1")).config == "one"
    run(store.finish("web1", "two"))
    seen = run(store.show("web1"))
    assert (seen.config, list(seen.dumps)) == ("two", ["other"])


def test_one_that_is_given_up_leaves_nothing(store: ExportStore) -> None:
    run(store.ensure_present(dump()))
    run(store.ensure_absent(dump()))
    run(store.ensure_absent(dump()))
    with pytest.raises(NotFound, match="No export web1 is being made"):
        run(store.finish("web1", ""))


def test_an_export_is_deleted_as_a_whole(store: ExportStore) -> None:
    made(store)
    run(store.remove("web1"))
    run(store.remove("web1"))
    assert run(store.exports()) == ()


def test_a_dump_is_opened_where_it_is(store: ExportStore) -> None:
    with pytest.raises(NodeFailure, match="No such file"):
        run(store.attach(dump(), Access.SOLE))
    run(store.ensure_present(dump()))
    assert run(store.attach(dump(), Access.SOLE)).endswith("/0")
    run(store.detach(dump()))


@pytest.mark.parametrize("name", ["..", "config.ini", "a/b", ".hidden", ""])
def test_no_name_leads_out_of_an_export(store: ExportStore, name: str) -> None:
    with pytest.raises(InvalidRequest):
        run(store.ensure_present(dump(name)))
    with pytest.raises(InvalidRequest):
        run(store.remove(f"../{name}"))


def test_a_dump_takes_no_space_before_something_is_in_it(tmp_path: Path) -> None:
    store = ExportDirectory(tmp_path)
    run(store.ensure_present(dump()))
    (file,) = tmp_path.rglob("0")
    assert (file.stat().st_size, file.stat().st_blocks) == (8 << 20, 0)


def test_a_dump_that_is_copied_is_not_deleted(tmp_path: Path) -> None:
    store = ExportDirectory(tmp_path)
    run(store.ensure_present(dump()))
    descriptor = store.open(dump())
    try:
        claim(descriptor, "0", to_write=True)
        with pytest.raises(NodeFailure, match="in use"):
            run(store.ensure_absent(dump()))
    finally:
        os.close(descriptor)


def test_what_was_begun_and_cut_off_is_finished_by_the_next(tmp_path: Path) -> None:
    store = ExportDirectory(tmp_path)
    made(store, "one")
    (tmp_path / "web1").rename(tmp_path / ".web1.old")  # as far as noded had come
    run(store.ensure_present(dump("new")))
    run(store.finish("web1", "two"))
    assert run(store.show("web1")).config == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web1"]
