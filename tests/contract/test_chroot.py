"""A guest's QEMU in a root directory of its own, and what Ganeti's models of security come to."""

import contextlib
import os
from pathlib import Path

import pytest

from common.noderpc.instances import GuestSpec, GuestState
from noded.hypervisor.kvm.user import ROOT
from noded.system.execute import execute
from tests.contract.test_guest_privileges import check_powerless, status
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    run_kvm,
    send,
    state_of,
)

pytestmark = [
    pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no root directory was tested"),
    pytest.mark.skipif(os.geteuid() != ROOT, reason="NOT ROOT: none can be made"),
]


def rooted(rig: KvmRig, *others: int) -> GuestSpec:
    disks = tuple(map(rig.disk, (0, *others)))
    return rig.spec(disks=disks, parameters={"use_chroot": True, "use_localtime": True})


def seen(rig: KvmRig, node: str, path: str) -> set[str]:
    """Return the names of what a guest's QEMU finds in a directory."""
    found = rig.home(node).process()
    assert found is not None
    with found:
        return {each.name for each in Path(f"/proc/{found.pid}/root/{path}").iterdir()}


def mounts(rig: KvmRig | None = None, node: str = "") -> str:
    """Return what is mounted for us, or for a guest's QEMU."""
    found = rig.home(node).process() if rig else None
    with found or contextlib.nullcontext():
        return Path(f"/proc/{found.pid if found else 'self'}/mountinfo").read_text()


def test_a_guest_that_is_rooted_sees_programs_and_nothing_that_is_kept_on_its_node() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(rooted(rig), ())
        await goes_on(rig, "alpha")
        assert f" {rig.root}/alpha/run/" not in mounts()
        check_powerless(status(rig, "alpha"))
        for node in ("alpha", "beta"):
            usual = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "dev", "etc", "proc"}
            way = set(rig.root.parts[1:2])  # to its own directory
            assert seen(rig, node, "") <= usual | way
            assert seen(rig, node, "etc") <= {"ld.so.cache", "localtime"}
            assert seen(rig, node, "dev") <= {"null", "zero", "urandom", "kvm", "userfaultfd"}
            assert seen(rig, node, str(rig.root)) == {node}
            assert "self" in seen(rig, node, "proc")
            assert "hidepid=" in mounts(rig, node)
            if node == "alpha":
                await rig.restart_noded("alpha")
                alpha = rig.nodes["alpha"]
                assert await state_of(alpha) is GuestState.RUNNING
                await alpha.ensure_disks(rooted(rig, 1))
                await send(rig, await beta.ensure_receiving(rooted(rig, 1), (), MOVE))
                await beta.ensure_resumed(WEB1, MOVE)
                await goes_on(rig, "beta")
        for each in (alpha, beta):
            await each.ensure_gone(WEB1)

    async def where_mounts_are_seen_by_all(rig: KvmRig) -> None:  # as on a node with systemd
        await execute("mount", "--bind", str(rig.root), str(rig.root), timeout_s=10)
        await execute("mount", "--make-shared", str(rig.root), timeout_s=10)
        try:
            await scenario(rig)
            assert f" {rig.root}/" not in mounts()
        finally:
            await execute("umount", "--lazy", str(rig.root), timeout_s=10)

    run_kvm(where_mounts_are_seen_by_all)


@pytest.mark.parametrize("name", ["root", "nobody", "nobody-of-this-node"])
def test_a_guest_of_a_named_user_has_one_of_its_own_all_the_same(name: str) -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        how = {"security_model": "user", "security_domain": name}
        await alpha.ensure_running(rig.spec(parameters=how), ())
        check_powerless(status(rig, "alpha"))

    run_kvm(scenario)
