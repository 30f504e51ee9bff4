"""Two nodes with a hypervisor each, fake or real, and what a test may do behind their backs."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
import uvloop

from common.names import InstanceId, InstanceName, MiB, TaskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, Reception
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.hypervisor.interface import Hypervisor, OpenDisk, Surroundings, Tell
from noded.hypervisor.kvm.disk_devices import device_name, node_name
from noded.hypervisor.kvm.driver import PROGRAM, KvmHypervisor
from noded.hypervisor.kvm.home import PASSABLE, Home
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.parse import parse_block_nodes, parse_devices
from noded.hypervisor.slots import DISK_SLOTS, NIC_SLOTS
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from tests.support.clock import simulate
from tests.support.disks import file_disk
from tests.support.tiny_guest import DISK_MIB, MEMORY_MIB, counted, make_disk

PATIENCE_S = 120.0  # whatever else the machine does
MOVE = TaskId("first move")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
ADDRESSES = {"alpha": "127.0.0.1", "beta": "127.0.0.2"}

NOBODY = Reception(port=1, secret="00" * 32)  # nobody listens there
LONGER_THAN_A_COUNT_S = 0.2

has_qemu = Path(PROGRAM).exists()


class Rig(Protocol):
    """Alpha and beta, which can exchange guests."""

    nodes: dict[str, Hypervisor]

    def spec(self, **changes: Any) -> GuestSpec:
        """Describe web1, which counts."""

    def disk(self, number: int, size: int = DISK_MIB) -> DiskSpec:
        """Describe a disk for web1, which is there; it boots from number 0."""

    async def seen(self, node: str) -> dict[int, int]:
        """Return the disks that web1 itself has: slots, and sizes in MiB."""

    async def seen_nics(self, node: str) -> dict[int, str]:
        """Return the nics that web1 itself has: slots, and MAC addresses."""

    def number(self, node: str, instance: InstanceId = WEB1) -> int:
        """Return how far a guest has counted since its last start, 0 before it began."""

    def crash(self, node: str, instance: InstanceId = WEB1) -> None:
        """Have a guest's process die."""

    def hang(self, node: str, instance: InstanceId = WEB1) -> None:
        """Have a guest's process do nothing any more."""

    def wake(self, node: str, instance: InstanceId = WEB1) -> None:
        """Have a process that hangs go on."""

    async def restart_noded(self, node: str) -> None:
        """Put a new hypervisor object in the place of the old one."""


class FakeRig:
    """On fakes; runs in virtual time."""

    def __init__(self) -> None:
        self.world = FakeWorld()
        self.machines = {name: FakeHypervisor(self.world, ADDRESSES[name]) for name in ADDRESSES}
        self.nodes: dict[str, Hypervisor] = {**self.machines}

    def spec(self, **changes: Any) -> GuestSpec:
        return _spec(GuestSpec(
            id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(MEMORY_MIB),
            vcpus=1, parameters={"migration_bandwidth": 8},
        ), changes)  # fmt: skip

    def disk(self, number: int, size: int = DISK_MIB) -> DiskSpec:
        return file_disk(_disk_id(number), f"/srv/{number}.img", size=size)

    async def seen(self, node: str) -> dict[int, int]:
        return self.machines[node].seen(WEB1)

    async def seen_nics(self, node: str) -> dict[int, str]:
        return self.machines[node].seen_nics(WEB1)

    def number(self, node: str, instance: InstanceId = WEB1) -> int:
        return self.machines[node].number(instance)

    def crash(self, node: str, instance: InstanceId = WEB1) -> None:
        self.machines[node].crash(instance)

    def hang(self, node: str, instance: InstanceId = WEB1) -> None:
        self.machines[node].hang(instance)

    def wake(self, node: str, instance: InstanceId = WEB1) -> None:
        self.machines[node].wake(instance)

    async def restart_noded(self, node: str) -> None:
        await self.nodes[node].close()  # the machine itself stays


class KvmRig:
    """On QEMU, with a disk that both nodes see."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(PASSABLE)
        self.rules = root / "rules"
        self.rules.write_text(f"image {root}\n")
        self.ifup = root / "kvm-ifup-custom"
        self.image = root / "0.img"
        make_disk(self.image)
        directories = Directories(local=str(root))
        self.opening: dict[str, OpenDisk] = {}  # by node; what opens the disks of its guests
        for name in ADDRESSES:
            (root / name).mkdir()
            self.opening[name] = FileStorage(lambda: directories).open
        self.nodes: dict[str, Hypervisor] = {name: self._new(name) for name in ADDRESSES}

    def _new(self, node: str) -> KvmHypervisor:
        return KvmHypervisor(
            Surroundings(
                instances=self.root / node / "run",
                identity=self.root / node,
                address=ADDRESSES[node],
                rules=self.rules,
                ifup=self.ifup,
                open_disk=partial(self._open, node),
            )
        )

    def spec(self, **changes: Any) -> GuestSpec:
        parameters = {"accelerator": "tcg"} | changes.pop("parameters", {})
        return _spec(GuestSpec(
            id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(MEMORY_MIB),
            vcpus=1, disks=(self.disk(0),),
            parameters=parameters,
        ), changes)  # fmt: skip

    def disk(self, number: int, size: int = DISK_MIB) -> DiskSpec:
        path = self.root / f"{number}.img"
        if not path.exists():
            path.write_bytes(bytes(DISK_MIB << 20))
        return file_disk(_disk_id(number), str(path), size=size)

    async def seen(self, node: str) -> dict[int, int]:
        async with monitor(self.home(node).qmp_socket, "web1") as session:
            devices = parse_devices(await session.ask("qom-list", path="/machine/peripheral"))
            nodes = parse_block_nodes(await session.ask("query-named-block-nodes", flat=True))
        every = {
            slot: nodes[node_name(slot)] for slot in range(DISK_SLOTS) if node_name(slot) in nodes
        }
        assert {device_name(slot) for slot in every} == {d for d in devices if "disk" in d}
        return {slot: node.size >> 20 for slot, node in every.items()}

    async def seen_nics(self, node: str) -> dict[int, str]:
        async with monitor(self.home(node).qmp_socket, "web1") as session:
            devices = parse_devices(await session.ask("qom-list", path="/machine/peripheral"))
            return {
                slot: await session.ask(
                    "qom-get", path=f"/machine/peripheral/nic{slot}", property="mac"
                )
                for slot in range(NIC_SLOTS)
                if f"nic{slot}" in devices
            }

    def _open(self, node: str, disk: DiskSpec) -> int:
        return self.opening[node](disk)

    def home(self, node: str, instance: InstanceId = WEB1) -> Home:
        return Home(self.root / node / "run", instance)

    def number(self, node: str, instance: InstanceId = WEB1) -> int:
        log = self.home(node, instance).serial_log
        return counted(log.read_bytes()) if log.exists() else 0

    def crash(self, node: str, instance: InstanceId = WEB1) -> None:
        self.signal(node, signal.SIGKILL, instance)

    def hang(self, node: str, instance: InstanceId = WEB1) -> None:
        self.signal(node, signal.SIGSTOP, instance)

    def wake(self, node: str, instance: InstanceId = WEB1) -> None:
        self.signal(node, signal.SIGCONT, instance)

    def signal(self, node: str, number: signal.Signals, instance: InstanceId = WEB1) -> None:
        found = self.home(node, instance).process()
        assert found is not None
        with found:
            found.signal(number)

    async def restart_noded(self, node: str) -> None:
        await self.nodes[node].close()
        self.nodes[node] = self._new(node)


Run = Callable[[Callable[[Rig], Awaitable[None]]], None]


def runner(kind: str) -> Run:
    """Return what runs a test on fakes (``fake``) or on real guests (``kvm``)."""
    if kind == "kvm" and not has_qemu:
        pytest.skip("QEMU IS NOT INSTALLED: the driver for real guests was not tested")
    return {"fake": run_fake, "kvm": run_kvm}[kind]  # type: ignore[return-value]


def run_fake(scenario: Callable[[FakeRig], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(FakeRig())

    simulate(main())


def run_kvm(
    scenario: Callable[[KvmRig], Awaitable[None]], *, patience_s: float = PATIENCE_S
) -> None:
    """Run with the event loop that noded uses; no guest survives."""
    # A short path: those of sockets have at most 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="hv-"))

    async def main() -> None:
        rig = KvmRig(root)
        try:
            async with asyncio.timeout(patience_s * 2):
                await scenario(rig)
        finally:
            for node in rig.nodes.values():
                for guest in await node.guests():
                    await node.ensure_gone(guest.id)
                await node.close()

    try:
        uvloop.run(main())
    finally:
        shutil.rmtree(root)


async def until(
    condition: Callable[[], bool | Coroutine[Any, Any, bool]], *, patience_s: float = PATIENCE_S
) -> None:
    """Return when ``condition`` has come true.

    Raises:
        TimeoutError: it has not in time, two minutes unless told.
    """
    async with asyncio.timeout(patience_s):
        while True:
            answer = condition()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.02)


async def goes_on(rig: Rig, node: str) -> int:
    """Wait until web1 has counted on twice, and return how far it is."""
    before = rig.number(node)
    await until(lambda: rig.number(node) >= before + 2)
    return rig.number(node)


async def report_of(node: Hypervisor, instance: InstanceId = WEB1) -> GuestReport | None:
    """Return what a node reports of a guest, None if nothing."""
    return next((each for each in await node.guests() if each.id == instance), None)


async def state_of(node: Hypervisor, instance: InstanceId = WEB1) -> GuestState | None:
    """Return the state in which a node reports a guest, None if it has none."""
    report = await report_of(node, instance)
    return report.state if report else None


def ignore(message: str, share: float | None) -> None:
    """Take news of a move and do nothing with it."""


async def receive(rig: Rig, node: str = "beta", move: TaskId = MOVE, **changes: Any) -> Reception:
    """Have a node wait for web1."""
    return await rig.nodes[node].ensure_receiving(rig.spec(**changes), (), move)


async def send(
    rig: Rig, reception: Reception, *, source: str = "alpha", target: str = "beta",
    move: TaskId = MOVE, tell: Tell = ignore, live: bool = True,
    parameters: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Send web1's memory; it does not run on the target yet."""
    await rig.nodes[source].migrate(
        WEB1, host=ADDRESSES[target], peer=target, reception=reception,
        parameters=rig.spec().parameters if parameters is None else parameters, live=live,
        move=move, tell=tell,
    )  # fmt: skip


async def move(
    rig: Rig, *, source: str = "alpha", target: str = "beta", move: TaskId = MOVE
) -> None:
    """Move web1, and have it run on the target."""
    await send(rig, await receive(rig, target, move), source=source, target=target, move=move)
    await rig.nodes[target].ensure_resumed(WEB1, move)


@asynccontextmanager
async def moving(
    rig: Rig, reception: Reception, **manner: Any
) -> AsyncIterator[asyncio.Task[None]]:
    """Have web1 move from alpha to beta, and go on when the transfer is under way or over."""
    under_way = asyncio.Event()

    def tell(message: str, share: float | None) -> None:
        if share:
            under_way.set()

    loop = asyncio.get_running_loop()
    task = loop.create_task(send(rig, reception, tell=tell, **manner))
    told = loop.create_task(under_way.wait())
    try:
        await asyncio.wait((task, told), return_when=asyncio.FIRST_COMPLETED)
        yield task
    finally:
        for each in (task, told):
            each.cancel()
        await asyncio.wait((task, told))


def _disk_id(number: int) -> str:
    return f"dddddddd-0000-4000-8000-{number:012}"


def _spec(spec: GuestSpec, changes: dict[str, Any]) -> GuestSpec:
    return msgspec.structs.replace(spec, **changes)
