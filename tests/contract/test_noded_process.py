"""The daemon as systemd or an operator starts it."""

import asyncio
import fcntl
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.settings import Settings
from common.names import ClusterName, NodeName
from common.paths import Paths
from common.tls.token import read_token
from coordinator.master.bootstrap import NewCluster, initialise
from noded.daemon.single import SingleInstance
from tests.support.https_node import LOCALHOST, run

Process = asyncio.subprocess.Process

HAND_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


async def start(root: Path, *options: str, **environment: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "noded.daemon.main", *options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=os.environ | environment | {"GANTRY_ROOT": str(root)},
    )  # fmt: skip


@asynccontextmanager
async def started(
    root: Path, *options: str, **environment: str
) -> AsyncIterator[tuple[Process, str]]:
    """Give the running daemon and its first line, and end it if the test did not."""
    process = await start(
        root, "--address", LOCALHOST, "--port", "0", "--no-mlock", *options, **environment
    )
    try:
        assert process.stdout
        yield process, (await process.stdout.readline()).decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def failed(root: Path, *options: str) -> tuple[int, str]:
    """Start a daemon that refuses to run; return its status and what it said."""
    process = await start(root, *options)
    _, told = await process.communicate()
    assert process.returncode is not None
    return process.returncode, told.decode()


def test_it_says_when_it_is_ready_and_ends_cleanly_when_told_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as (process, line):
            assert "is ready: a node of no cluster" in line
            process.send_signal(signal.SIGTERM)
            out, err = await process.communicate()
            assert (process.returncode, out, err) == (0, b"", b"")
        log = (tmp_path / "var/log/gantry/noded.log").read_text()
        assert "is ready" in log
        assert "guests run on" in log

    run(scenario())


def test_a_cluster_cannot_begin_with_a_hypervisor_that_its_node_does_not_have(
    tmp_path: Path,
) -> None:
    """That of simulations is known, and no real node offers it. The node is as it was then."""

    async def scenario() -> None:
        async with started(tmp_path) as (_, line):
            port = int(re.findall(r"port (\d+)", line)[0])
            wanted = NewCluster(
                name=ClusterName("prod"), node=NodeName("alpha"), primary_ip=LOCALHOST, port=port,
                settings=Settings(enabled_hypervisors=("kvm", "fake")),
            )  # fmt: skip
            with pytest.raises(InvalidRequest, match="offers kvm and no hypervisor fake"):
                await initialise(Paths(str(tmp_path)), wanted)
            kvm = replace(wanted, settings=Settings(enabled_hypervisors=("kvm",)))
            await initialise(Paths(str(tmp_path)), kvm)

    run(scenario())


def test_a_cluster_cannot_begin_at_an_address_where_its_node_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as (_, line):
            port = int(re.findall(r"port (\d+)", line)[0])
            here = NewCluster(
                name=ClusterName("prod"), node=NodeName("alpha"), primary_ip=LOCALHOST, port=port
            )
            for address in ("0.0.0.0", "::", "224.0.0.1", "255.255.255.255"):
                with pytest.raises(InvalidRequest, match="of no single machine"):
                    await initialise(Paths(str(tmp_path)), replace(here, primary_ip=address))
            elsewhere = replace(here, primary_ip="127.0.0.2")  # it listens on 127.0.0.1 alone
            with pytest.raises(InvalidRequest, match=r"is not reached at 127\.0\.0\.2.*--address"):
                await initialise(Paths(str(tmp_path)), elsewhere)
            await initialise(Paths(str(tmp_path)), here)

    run(scenario())


def test_the_token_outlives_a_restart_and_is_for_root_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        state = tmp_path / "var/lib/gantry"
        tokens = []
        for _ in range(2):
            async with started(tmp_path):
                tokens.append(read_token((state / "join-token").read_text()))
        assert tokens[0] == tokens[1]
        assert stat.S_IMODE((state / "join-token").stat().st_mode) == 0o600
        assert stat.S_IMODE((state / "joining").stat().st_mode) == 0o700

    run(scenario())


def test_a_second_one_for_the_same_node_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with started(tmp_path) as (process, _):
            status, told = await failed(tmp_path, "--port", "0")
            assert status == 4
            assert f"Another noded serves this node already, as process {process.pid}" in told
            process.kill()
            await process.wait()
            async with started(tmp_path) as (_, line):  # a killed one leaves no lock
                assert "is ready" in line

    run(scenario())


def test_a_taken_port_is_told_with_a_way_to_find_who_has_it(tmp_path: Path) -> None:
    with socket.create_server((LOCALHOST, 0)) as other:
        port = str(other.getsockname()[1])
        status, told = run(failed(tmp_path, "--address", LOCALHOST, "--port", port))
    assert status == 4
    assert f"Cannot listen on {LOCALHOST} port {port}: another program does" in told


def test_its_port_is_nobody_elses_while_it_is_down(tmp_path: Path) -> None:
    """A systemd of ours keeps what it is handed, and hands it on to the next noded."""

    async def scenario() -> None:
        with socket.create_server((LOCALHOST, 0)) as probe:
            port = probe.getsockname()[1]
        told, kept = await asyncio.to_thread(started_and_killed, tmp_path, port)
        assert {"FDSTORE=1", "FDNAME=port"} < set(told)
        with socket.socket(fileno=kept) as listener:
            with pytest.raises(OSError, match="in use"):
                socket.create_server((LOCALHOST, port))
            caller = socket.create_connection((LOCALHOST, port))  # waits in the queue
            environment = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "port"}
            number = str(listener.fileno())
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-Ic", HAND_ON, number, *command(port),
                pass_fds=(listener.fileno(),),
                env=os.environ | environment | {"GANTRY_ROOT": str(tmp_path)},
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout
            assert f"port {port}" in (await process.stdout.readline()).decode()
            held = await asyncio.to_thread(Path(f"/proc/{process.pid}/fdinfo/3").read_text)
            assert int(held.split("flags:")[1].split()[0], 8) & os.O_CLOEXEC
            await asyncio.to_thread(shake_hands, caller)
            process.kill()
            await process.communicate()

    run(scenario())


def command(port: int) -> tuple[str, ...]:
    address = ("--address", LOCALHOST, "--port", str(port))
    return (sys.executable, "-m", "noded.daemon.main", *address, "--no-mlock")


def shake_hands(caller: socket.socket) -> None:
    """Check that a noded of no cluster answers a connection, which is closed then."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    caller.settimeout(20)
    with context.wrap_socket(caller) as connection:
        assert connection.version() == "TLSv1.3"


def started_and_killed(root: Path, port: int) -> tuple[list[str], int]:
    """Start noded as systemd does, and kill it; return the first it told, and what it handed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{root}/notify")
        manager.settimeout(30)
        environment = {"NOTIFY_SOCKET": f"{root}/notify", "GANTRY_ROOT": str(root)}
        with subprocess.Popen(command(port), env=os.environ | environment) as process:
            try:
                words, kept, _, _ = socket.recv_fds(manager, 4096, 1)
                while b"READY=1" not in manager.recv(4096):
                    pass
            finally:
                process.kill()
    return words.decode().splitlines(), kept[0]


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    status, told = run(failed(tmp_path, "--address", "192.0.2.1"))
    assert (status, "Cannot listen on 192.0.2.1 port 1811" in told) == (7, True)


@pytest.mark.parametrize(
    ("file", "text", "told_so"),
    [
        ("mastership.json", '{"epoch":', "does not know which master it promised to obey"),
        ("identity/membership.json", "{}", "The identity of this node is damaged"),
    ],
)
def test_a_damaged_file_is_named_and_left_as_it_is(
    tmp_path: Path, file: str, text: str, told_so: str
) -> None:
    path = tmp_path / "var/lib/gantry" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    status, told = run(failed(tmp_path, "--port", "0", "--no-mlock"))
    assert status == 7
    assert told_so in told
    assert str(path) in told or str(path.parent) in told
    assert path.read_text() == text


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("in the way")
    status, told = run(failed(tmp_path, "--port", "0"))
    assert (status, "Cannot make the directories of this node" in told) == (7, True)


def test_systemd_is_told(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")

    async def scenario() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(address)
            receiver.settimeout(0)
            async with started(tmp_path / "node", NOTIFY_SOCKET=address):
                loop = asyncio.get_running_loop()
                told = await loop.sock_recv(receiver, 1000)
                assert told.startswith(b"READY=1\nSTATUS=noded "), told

    run(scenario())


def test_the_lock_is_free_again_when_released(tmp_path: Path) -> None:
    path = tmp_path / "run" / "noded.lock"
    first = SingleInstance(path)
    with pytest.raises(Conflict, match=f"as process {os.getpid()}"):
        SingleInstance(path)
    first.release()
    SingleInstance(path).release()


def test_a_lock_file_of_a_dead_process_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "noded.lock"
    path.write_text("999999999\n")
    SingleInstance(path).release()
    assert path.read_text() == f"{os.getpid()}\n"
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
