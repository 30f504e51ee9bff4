"""Disks that are logical volumes, on real ones: what holds when node, group or disk do not."""

from deploy.uml import faults
from deploy.uml.node import Node
from tests.lab.guests import guest
from tests.lab.stage import Stage, said, until

OLD = "head -c 4M /dev/urandom | tr '\\0' x"  # no zeros


def test_a_guest_goes_on_from_its_volume_after_its_node_was_off(stage: Stage) -> None:
    with guest(stage, "store", "plain", "-n gamma") as store:
        told = store.goes_on(stage.gamma)
        assert volumes(stage.gamma, "lv_device_open") == ["open"]
        stage.gamma.power_off()
        stage.power_on()
        until(lambda: "gamma" in stage.alpha.run("gnt-node list -o name"), "gamma")
        assert volumes(stage.gamma, "lv_active") in (
            [""],
            ["active"],
        )  # of its new guest, if at all
        said(stage.alpha, "gnt-instance startup store")
        store.goes_on(stage.gamma)
        found = store.written(stage.gamma)
        assert found.starts == 2
        assert found.whole_to > told


def test_nobody_sees_what_a_former_volume_held(stage: Stage) -> None:
    add = "gnt-instance add -t plain --no-start --no-nics -B memory=128 -n gamma"
    try:
        said(stage.alpha, f"{add} --disk 0:size=8M first")
        (name,) = volumes(stage.gamma, "lv_name")
        stage.gamma.run(
            f"lvchange -ay -K gantry/{name} && {OLD} | dd of=/dev/gantry/{name} bs=1M conv=fsync"
        )
        said(stage.alpha, "gnt-instance remove --force first")
        raw = "lvcreate --yes -Wn -Zn -L 8M -n raw gantry && head -c 4M /dev/gantry/raw | md5sum"
        zeros = stage.gamma.run("head -c 4M /dev/zero | md5sum")
        assert (
            stage.gamma.run(f"{raw} | tail -1").splitlines()[-1] not in zeros
        )  # it is there still
        stage.gamma.run("lvremove --yes gantry/raw")
        said(stage.alpha, f"{add} --disk 0:size=8M second")
        (name,) = volumes(stage.gamma, "lv_name")
        seen = stage.gamma.run(
            f"lvchange -ay -K gantry/{name} && head -c 4M /dev/gantry/{name} | md5sum"
        )
        assert seen.strip() in zeros
    finally:
        said(stage.alpha, "gnt-instance remove --force first; gnt-instance remove --force second")


def test_a_full_group_is_told_and_nothing_is_left_of_the_attempt(stage: Stage) -> None:
    stage.gamma.run("lvcreate --yes -Wn -Zn -l 100%FREE -n filler gantry")
    try:
        refused = said(
            stage.alpha,
            "gnt-instance add -t plain --disk 0:size=8M --no-start --no-nics -n gamma full",
        )
        assert "0 MiB left in the volume group gantry" in refused
        assert volumes(stage.gamma, "lv_name") == ["filler"]
        assert "filler" not in stage.verify()  # which is none of Gantry's business
    finally:
        stage.gamma.run("lvremove --yes gantry/filler")


def test_a_volume_that_was_left_is_found(stage: Stage) -> None:
    disk = "dddddddd-0000-4000-8000-000000000001"
    tags = f"--addtag gantry --addtag gantry.disk.{disk} --addtag gantry.instance.{disk}"
    stage.gamma.run(f"lvcreate --yes -Wn -Zn -L 8M {tags} -n {disk}.disk gantry")
    try:
        assert f"the volume gantry/{disk}.disk is left over of the disk {disk}" in stage.verify()
    finally:
        stage.gamma.run(f"lvremove --yes gantry/{disk}.disk")


def test_a_group_whose_disk_fails_is_told_and_comes_back(stage: Stage) -> None:
    with guest(stage, "store", "plain", "-n gamma"):
        faults.break_disk(stage.gamma)
        try:
            told = stage.verify()
            assert "the volume group gantry is not usable" in told
            assert "is missing on gamma" in told
            refused = said(stage.alpha, "gnt-instance reboot --type hard store")
            assert "cannot be attached" in refused
        finally:
            faults.mend_disk(stage.gamma)
        assert "exit 0" in said(stage.alpha, "gnt-instance startup store")


def volumes(node: Node, field: str) -> list[str]:
    """Return a field of each volume on a node."""
    lines = node.run(f"lvs --noheadings -o {field} gantry").splitlines()
    return [line.strip() for line in lines]
