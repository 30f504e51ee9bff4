"""``gnt-instance info`` tells what a disk takes beside its size, where that is less."""

from typing import Any

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

TOLD: dict[str, Any] = {
    "name": "web1", "forthcoming": False, "tags": [], "snodes": [], "maybe_on": [],
    "ctime": 1e9, "mtime": 1e9, "hvparams": {}, "custom_hvparams": {}, "beparams": {},
    "custom_beparams": {}, "disk.sizes": [102400, 1024], "disk.names": ["root", None],
    "disk.uuids": ["u0", "u1"], "disk.snapshots": [[], []],
    **{f"nic.{each}": [] for each in ("macs", "ips", "modes", "links", "vlans", "names", "uuids")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "told"), [([0, [1536, None]], ["takes: 1.5G"]), ([3, None], []), ([2, None], [])]
)
def test_what_a_disk_takes_is_told_where_its_node_tells(
    run: Run, coordinator: ScriptedCoordinator, taken: list[Any], told: list[str]
) -> None:
    def query(_: str, fields: list[str], __: Any) -> Any:
        described = [dict.fromkeys(("name", "title", "kind", "doc"), field) for field in fields]
        known = {name: [0, value] for name, value in TOLD.items()} | {"disk.allocated": taken}
        return {"fields": described, "data": [[known.get(field, [3, None]) for field in fields]]}

    coordinator.methods["Query"] = query
    ran = run("gnt-instance info web1")
    assert "disk/1: 1.0G" in ran.out, ran.err
    lines = [line.strip() for line in ran.out.splitlines()]
    assert [line for line in lines if "takes" in line] == told
    assert not told or lines.index("takes: 1.5G") < lines.index("- disk/1: 1.0G")


@pytest.mark.parametrize(("spindles", "told"), [([0, [2, None]], ["spindles: 2"]), ([3, None], [])])
def test_how_many_physical_volumes_are_a_disks_own_is_told_where_it_has_some(
    run: Run, coordinator: ScriptedCoordinator, spindles: list[Any], told: list[str]
) -> None:
    def query(_: str, fields: list[str], __: Any) -> Any:
        described = [dict.fromkeys(("name", "title", "kind", "doc"), field) for field in fields]
        known = {name: [0, value] for name, value in TOLD.items()} | {"disk.spindles": spindles}
        return {"fields": described, "data": [[known.get(field, [3, None]) for field in fields]]}

    coordinator.methods["Query"] = query
    ran = run("gnt-instance info -s web1")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert [line for line in lines if "spindles" in line] == told, ran.out
