"""Debian's own definitions install guests on a node, and export, import and rename them."""

from collections.abc import Iterator

import pytest

from tests.lab.debian_os import GUEST, installable, on_disk, put_guest, told
from tests.lab.leftovers import leftovers
from tests.lab.stage import Stage, on_request, said, until

INSTALL_S = 3600.0  # whatever else the machine does
COPY_S = 1200.0
BOOT_S = 600.0
ADD = "gnt-instance add -t plain --no-nics --no-start -n gamma -B memory=160"
REMOVE = "gnt-instance remove --force --shutdown-timeout 0"


@pytest.fixture(scope="module", autouse=True)
def definitions(standing: Stage) -> Iterator[None]:
    """Have Debian's definitions on all nodes; afterwards nothing that they made is left."""
    with installable(standing):
        yield
        assert not leftovers(standing)
        for node in standing.nodes:
            assert node.run("ls /dev/mapper").split() == ["control", "lab-disk"]
            assert not node.run("losetup --list --noheadings").strip()


def test_debians_noop_makes_an_instance_of_an_empty_disk(stage: Stage) -> None:
    alpha = stage.alpha
    diagnosed = said(alpha, "gnt-os diagnose")
    for name in ("debootstrap", "noop"):
        assert f"OS: {name} [global status: valid]" in diagnosed
    assert "status: invalid" not in diagnosed
    try:
        assert "exit 0" in said(alpha, f"{ADD} --disk 0:size=16M -o noop blank")
        assert alpha.run("gnt-instance list --no-headers -o os blank").strip() == "noop"
        assert "exit 0" in said(alpha, "gnt-instance rename blank empty")
    finally:
        clear(stage, "blank", "empty")


@on_request
def test_debootstrap_installs_exports_imports_and_renames_a_debian(stage: Stage) -> None:
    alpha = stage.alpha
    try:
        add = f"{ADD} --disk 0:size=1G -o debootstrap+default shop"
        assert "exit 0" in said(alpha, add, seconds=INSTALL_S)
        version, name = on_disk(stage, "shop")
        assert version.startswith("12.")
        assert name == "shop"

        assert "exit 0" in said(alpha, "gnt-instance rename shop store")
        assert on_disk(stage, "store") == [version, "store"]

        assert "exit 0" in said(alpha, "gnt-backup export -n beta store", seconds=COPY_S)
        bring = "gnt-backup import -t drbd -n alpha:gamma --src-node beta --src-dir store bazaar"
        assert "exit 0" in said(alpha, bring, seconds=COPY_S)
        assert on_disk(stage, "bazaar") == [version, "bazaar"]

        put_guest(stage.lab)
        assert "exit 0" in said(alpha, f"gnt-instance startup -H {GUEST} bazaar")
        uuid = alpha.run("gnt-instance list --no-headers -o uuid bazaar").strip()
        until(lambda: f"Debian {version} is bazaar" in told(alpha, uuid), "Debian to boot", BOOT_S)
    finally:
        alpha.run("gnt-backup remove --force store || :")
        clear(stage, "shop", "store", "bazaar")


def clear(stage: Stage, *names: str) -> None:
    """Undo what is under way, and remove what of these instances there is."""
    alpha = stage.alpha
    alpha.run("gnt-job list --running --no-headers -o id | xargs -r gnt-job cancel --force")
    for name in names:
        said(alpha, f"{REMOVE} {name}")
