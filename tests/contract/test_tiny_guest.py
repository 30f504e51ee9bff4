"""What the tests' guest promises: what it says on its console is on its disk, for good."""

import errno

import pytest

from noded.hypervisor.kvm.monitor import monitor
from tests.support.hypervisors import KvmRig, goes_on, has_qemu, run_kvm, until
from tests.support.sequence import RING, SECTOR, check, make_record
from tests.support.tiny_guest import DISK_MIB, kernel, numbers

pytestmark = pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: nothing was started")


def console(rig: KvmRig) -> bytes:
    return rig.home("alpha").serial_log.read_bytes()


def test_what_it_says_is_on_its_disk_when_it_is_killed() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await until(lambda: rig.number("alpha") > 5)
        rig.crash("alpha")
        found = check(rig.image.read_bytes())
        assert (found.wrong, found.starts) == ((), 1)
        assert found.whole_to >= numbers(console(rig))[-1]

    run_kvm(scenario)


def test_it_goes_on_from_where_it_was() -> None:
    async def scenario(rig: KvmRig) -> None:
        for _ in range(2):
            await rig.nodes["alpha"].ensure_running(rig.spec(), ())
            await goes_on(rig, "alpha")
            await rig.nodes["alpha"].ensure_gone(rig.spec().id)
        found = check(rig.image.read_bytes())
        assert (found.wrong, found.starts) == ((), 2)

    run_kvm(scenario)


def test_as_a_kernel_it_needs_nothing_on_its_disk() -> None:
    async def scenario(rig: KvmRig) -> None:
        rig.image.write_bytes(bytes(DISK_MIB << 20))
        program = rig.root / "kernel"
        program.write_bytes(kernel())
        spec = rig.spec(parameters={"kernel_path": str(program)})
        await rig.nodes["alpha"].ensure_running(spec, ())
        await goes_on(rig, "alpha")
        assert check(rig.image.read_bytes()).whole_to >= 2
        assert not any(rig.image.read_bytes()[:SECTOR])

    run_kvm(scenario)


def test_without_a_disk_it_counts() -> None:
    async def scenario(rig: KvmRig) -> None:
        program = rig.root / "kernel"
        program.write_bytes(kernel())
        spec = rig.spec(disks=(), parameters={"kernel_path": str(program)})
        await rig.nodes["alpha"].ensure_running(spec, ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_each_write_is_flushed_before_it_has_ended() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with monitor(rig.home("alpha").qmp_socket, rig.spec().name) as session:
            (block,) = await session.ask("query-block")
        assert block["inserted"]["cache"]["writeback"] is False

    run_kvm(scenario)


def test_a_write_that_fails_is_tried_until_it_succeeds_and_the_next_ones_are_written() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with monitor(rig.home("alpha").qmp_socket, rig.spec().name) as session:
            nodes = await session.ask("query-named-block-nodes", flat=True)
            (file,) = (node["node-name"] for node in nodes if node["drv"] == "file")
            (disk,) = (node["node-name"] for node in nodes if node["drv"] == "raw")
            failing = {"event": "write_aio", "errno": errno.EIO, "once": True}
            await session.ask(
                "blockdev-add",
                **{"driver": "blkdebug", "node-name": "bad", "image": file},
                **{"inject-error": [failing]},
            )
            reopened = {
                "driver": "raw",
                "node-name": disk,
                "file": "bad",
                "cache": {"direct": False},
            }
            await session.ask("blockdev-reopen", options=[reopened])
        await until(lambda: b"the disk failed" in console(rig))
        await goes_on(rig, "alpha")
        rig.crash("alpha")
        found = check(rig.image.read_bytes())
        assert (found.wrong, found.starts) == ((), 1)
        assert found.whole_to >= numbers(console(rig))[-1]

    run_kvm(scenario)


def test_a_ring_that_is_full_is_written_anew() -> None:
    async def scenario(rig: KvmRig) -> None:
        records = b"".join(make_record(number, 7) for number in range(1, RING + 1))
        with rig.image.open("r+b") as disk:
            disk.seek(SECTOR)
            disk.write(records)
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        rig.crash("alpha")
        found = check(rig.image.read_bytes())
        assert (found.wrong, found.starts) == ((), 2)
        assert found.last > RING
        assert console(rig).startswith(b"going on from %08X" % RING)

    run_kvm(scenario)
