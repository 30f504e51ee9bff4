"""The life of the node daemon's process, from its lock file to its last log line."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import uvloop

from common.names import NodeId
from common.paths import Paths
from common.systemd import Supervisor
from common.tasks import Background
from common.version import VERSION
from noded.console_log import begin_logging
from noded.copies.driver import ProcessCopier
from noded.daemon.node import Drivers, Node
from noded.daemon.port import open_port
from noded.daemon.server import Server
from noded.daemon.single import SingleInstance
from noded.durable_file import explaining
from noded.exports.directory import ExportDirectory
from noded.hooks.directory import HookScripts
from noded.hypervisor.drivers import hypervisors
from noded.hypervisor.interface import Surroundings
from noded.identity.keys import ChildKeyMaker
from noded.images.definition import image_definition
from noded.machine.driver import LinuxMachine
from noded.memory_lock import lock_memory
from noded.network.linux import LinuxNetwork
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.powercycle import find_switch
from noded.programs.directory import ProgramDirectory
from noded.storage.drivers import storages
from noded.storage.lvm.physical import LvmPhysicalVolumes

MOST_THREADS = 8  # for the blocking calls of drivers

log = logging.getLogger(__name__)


def run(paths: Paths, options: argparse.Namespace) -> None:
    """Serve until told to stop by SIGTERM or SIGINT.

    Args:
        paths: of this node.
        options: as ``noded.daemon.main`` reads them.

    Raises:
        GntError: it cannot start; says why.
    """
    with explaining("make the directories of this node"):
        for directory in (paths.state, paths.runtime):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)  # whatever the umask: others look for ssconf and sockets here
    single = SingleInstance(paths.runtime / "noded.lock")
    supervisor = Supervisor()
    listener = open_port(options.address, options.port, supervisor)
    writer = begin_logging(paths.logs / "noded.log", verbose=options.debug)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(paths, options, listener, supervisor))
    finally:
        writer.stop()
        single.release()


async def _serve(
    paths: Paths, options: argparse.Namespace, listener: socket.socket, supervisor: Supervisor
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="driver"))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    locked = not options.no_mlock and lock_memory()
    node = Node(paths, _drivers(paths, options, me=lambda: node.uuid, locked=locked))
    background = Background()
    try:
        await node.start()
        server = Server(node, paths, listener)
        try:
            await server.open()
            log.info("%s", ready := _ready(node, paths, listener, locked=locked))
            print(ready, flush=True)  # noqa: T201 -- the one line a starting daemon says
            background.start(supervisor.tell_alive(), name="tell systemd that noded is alive")
            supervisor.tell("READY=1", f"STATUS={ready}")
            await stop.wait()
            supervisor.tell("STOPPING=1")
            log.info("noded stops, as it was told to; guests run on.")
        finally:
            await server.close()
            await background.close()
    finally:
        await node.close()
        supervisor.close()


def _drivers(
    paths: Paths, options: argparse.Namespace, *, me: Callable[[], NodeId], locked: bool
) -> Drivers:
    exports = ExportDirectory(paths.exports)
    disks = storages(paths, exports, me)
    address = options.address or "0.0.0.0"  # noqa: S104 -- as the port of noded
    return Drivers(
        storages=disks,
        physical=LvmPhysicalVolumes(),
        copier=ProcessCopier(
            paths.copies, identity=paths.identity, address=address, open_disk=disks.open
        ),
        exports=exports,
        operating_systems=ProcessOsDriver(
            Places(
                search_path=paths.operating_systems(),
                runs=paths.os_runs,
                logs=paths.os_logs,
                built_in=(image_definition(paths.images, paths.guest_rules),),
            ),
            disks.open,
        ),
        hooks=HookScripts(paths.hooks, paths.state),
        programs=ProgramDirectory(paths.out_of_band, paths.restricted_commands),
        network=LinuxNetwork(),
        hypervisors=hypervisors(
            Surroundings(
                instances=paths.instances,
                identity=paths.identity,
                address=address,
                rules=paths.guest_rules,
                ifup=paths.kvm_ifup,
                open_disk=disks.open,
            )
        ),
        machine=LinuxMachine(),
        power=find_switch(allowed=options.allow_powercycle, root=os.environ.get("GANTRY_ROOT", "")),
        keys=ChildKeyMaker(),
        now=time.time,
        # It goes on while the machine sleeps; orders sent before that are over when it wakes.
        clock=lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        memory_locked=lambda: locked,
    )


def _ready(node: Node, paths: Paths, listener: socket.socket, *, locked: bool) -> str:
    host, port = listener.getsockname()[:2]
    member = node.identity.member
    who = (
        f"node {member.node} of the cluster {member.cluster}"
        if member
        else f"a node of no cluster, its join token in {paths.join_token}"
    )
    memory = "locked" if locked else "not locked"
    return f"noded {VERSION} is ready: {who}; listens on {host} port {port}; memory {memory}."
