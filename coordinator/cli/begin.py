"""What no coordinator can do for us: begin a cluster, move its mastership here, end it."""

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from common.names import ClusterName, NodeName
from common.paths import Paths
from common.ports import port
from coordinator.cli import service
from coordinator.cli.address import find_address
from coordinator.cli.connection import connect
from coordinator.cli.derive import read_hypervisors, typed
from coordinator.cli.follow import follow
from coordinator.cli.keyval import parse_keyval, split_escaped
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.submit import NeedsConfirmation
from coordinator.cli.telling import tell

PORT = 1811
ELSEWHERE = ("192.0.2.1", 9)  # an address for documentation (RFC 5737); nothing is sent there


def init(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster init``: make a cluster of this node, and start its coordinator."""
    from coordinator.master.bootstrap import NewCluster, initialise

    options = _init_parser(command).parse_args(words)
    wanted = NewCluster(**_wanted(options))
    asyncio.run(initialise(Paths(), wanted))
    service.start(_port_words(options.port))
    tell(
        options,
        {"cluster": wanted.name, "master": wanted.node},
        f"The cluster {wanted.name} is ready. This node, {wanted.node}, is its master.",
    )
    return 0


def take_over(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster master-failover``: make this node the master, and start its coordinator."""
    parser = Parser(command, "Make this node, a master candidate, the master of its cluster.")
    parser.add_argument("--no-voting", action="store_true",
                        help="without a quorum: you know that no other master runs")  # fmt: skip
    parser.add_argument("--local-is-right", action="store_true",
                        help="with --no-voting: even if another's state is newer")  # fmt: skip
    parser.add_argument("--yes-do-it", action="store_true", help="confirm --no-voting")
    add_json(parser)
    _add_port(parser)
    options = parser.parse_args(words)
    if (options.no_voting or options.local_is_right) and not options.yes_do_it:
        raise NeedsConfirmation(
            "Without voting two nodes may be master at once, which destroys data. If you know "
            "that no other master runs, add --yes-do-it."
        )

    from coordinator.master import takeover
    from coordinator.quorum.question import Word

    word = Word.NO_VOTING if options.no_voting else Word.NONE
    if options.local_is_right:
        word = Word.LOCAL_IS_RIGHT
    taken = asyncio.run(takeover.take_over(Paths(), options.port, word))
    # The coordinator asks the nodes once more, and gets as few answers as we did.
    given = ("--no-voting", "--yes-do-it") if taken.overridden else ()
    service.start((*_port_words(options.port), *given))
    silent = ", ".join(taken.unheard)
    tell(
        options,
        {name: getattr(taken, name) for name in taken.__struct_fields__},
        *(f"Set aside by your word: {text}" for text in taken.overridden),
        f"{taken.master} is the master now.",
        *([f"These nodes did not answer: {silent}."] if silent else []),
    )
    return 0


def destroy(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster destroy``: have every node forget the cluster, this one last."""
    parser = Parser(command, "End the cluster: every node forgets it. It must have no instances.")
    parser.add_argument("--yes-do-it", "--ya-rly", action="store_true", help="confirm it")
    add_json(parser)
    options = parser.parse_args(words)
    if not options.yes_do_it:
        raise NeedsConfirmation("This ends the cluster for good; add --yes-do-it to confirm.")
    with connect() as client:
        master = client.call("QueryConfigValues", ["master_node"])
        ((port,),) = client.call("QueryNodes", master, ["port"])
        job = client.call("SubmitJob", [{"OP_ID": "OP_CLUSTER_DESTROY"}])
        end = follow(client, int(job), out=sys.stderr if options.json else sys.stdout)
    if end.failure:
        raise end.failure

    from coordinator.master.bootstrap import dissolve

    service.stop()
    asyncio.run(dissolve(Paths(), port))
    tell(options, {"destroyed": True}, "The cluster is no more.")
    return 0


def _init_parser(command: str) -> Parser:
    parser = Parser(command, "Make a cluster with this node as its first and its master.")
    parser.add_argument("name", metavar="NAME", help="of the cluster")
    parser.add_argument("--node-name", metavar="NAME", help="of this node (its host name)")
    parser.add_argument("--address", "--primary-ip", dest="address", metavar="IP|HOST",
                        help="of this node, for the others (found by its name)")  # fmt: skip
    parser.add_argument("-s", "--secondary-ip", default="", metavar="IP|HOST",
                        help="for replication and migration")  # fmt: skip
    _add_port(parser)
    parser.add_argument("-C", "--candidate-pool-size", type=int, default=5, metavar="N",
                        help="how many nodes hold the state (5)")  # fmt: skip
    parser.add_argument("--enabled-hypervisors", default="kvm", metavar="NAMES",
                        help="with commas, the preferred one first (kvm)")  # fmt: skip
    parser.add_argument("--enabled-disk-templates", default="sharedfile,file,diskless",
                        metavar="NAMES", help="the preferred one first")  # fmt: skip
    parser.add_argument("--file-storage-dir", default="", metavar="PATH",
                        help="where each node keeps file disks of its own")  # fmt: skip
    parser.add_argument("--shared-file-storage-dir", default="", metavar="PATH",
                        help="where shared file disks are: the same on every node")  # fmt: skip
    parser.add_argument("-I", "--default-iallocator", default="hail", metavar="NAME",
                        help="chooses nodes where none is named (hail)")  # fmt: skip
    parser.add_argument("-m", "--mac-prefix", default="aa:00:00", metavar="XX:XX:XX",
                        help="of new nics (aa:00:00)")  # fmt: skip
    parser.add_argument("-H", "--hypervisor-parameters", action="append", default=[],
                        metavar="HYPERVISOR:NAME=VALUE,…",
                        help="defaults of all instances, as in kvm:acpi=no")  # fmt: skip
    parser.add_argument("-B", "--backend-parameters", default="", metavar="NAME=VALUE,…",
                        help="defaults of all instances: memory=SIZE,vcpus=N,…")  # fmt: skip
    parser.add_argument("-N", "--nic-parameters", default="", metavar="NAME=VALUE,…",
                        help="defaults of all nics: mode=MODE,link=BRIDGE")  # fmt: skip
    parser.add_argument("--node-parameters", default="", metavar="NAME=VALUE,…",
                        help="defaults of all nodes: cpu_speed=FACTOR,…")  # fmt: skip
    add_json(parser)
    for flag in ("--no-etc-hosts", "--no-ssh-init"):  # Ganeti's; we never touch either
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)
    return parser


def _wanted(options: argparse.Namespace) -> dict[str, Any]:
    """Turn the words into what a new cluster is made of."""
    from common.model.parameters import Backend, NicParameters, NodeParameters
    from common.model.settings import read_settings

    node = options.node_name or socket.gethostname()
    return {
        "name": ClusterName(options.name),
        "node": NodeName(node),
        "primary_ip": find_address(options.address) if options.address else own_address(node),
        "secondary_ip": find_address(options.secondary_ip) if options.secondary_ip else "",
        "port": options.port,
        "settings": read_settings(
            {
                "candidate_pool_size": options.candidate_pool_size,
                "enabled_hypervisors": split_escaped(options.enabled_hypervisors),
                "enabled_disk_templates": split_escaped(options.enabled_disk_templates),
                "file_storage_dir": options.file_storage_dir,
                "shared_file_storage_dir": options.shared_file_storage_dir,
                "mac_prefix": options.mac_prefix,
            }
        ),
        "default_iallocator": options.default_iallocator,
        "hvparams": read_hypervisors(options.hypervisor_parameters),
        "beparams": _both_memories(typed(parse_keyval(options.backend_parameters), Backend)),
        "nicparams": typed(parse_keyval(options.nic_parameters), NicParameters),
        "ndparams": typed(parse_keyval(options.node_parameters), NodeParameters),
    }


def own_address(node: str) -> str:
    """Return the address by which other machines know this one.

    Raises:
        InvalidRequest: the name leads to none, and there is no route to anywhere.
    """
    try:
        found = [str(info[4][0]) for info in socket.getaddrinfo(node, None, socket.AF_INET)]
    except OSError:
        found = []
    outside = [address for address in found if not address.startswith("127.")]
    if outside:
        return outside[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError as error:
            raise InvalidRequest(
                f"The name {node} leads to no address of this machine; give --address."
            ) from error
        return str(probe.getsockname()[0])


def _both_memories(values: dict[str, Any]) -> dict[str, Any]:
    """Write Ganeti's ``memory`` as what it stands for."""
    if "memory" not in values:
        return values
    memory = values.pop("memory")
    return {"maxmem": memory, "minmem": memory} | values


def _add_port(parser: Parser) -> None:
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help="of noded here (1811)")


def _port_words(port: int) -> tuple[str, ...]:
    return () if port == PORT else ("--port", str(port))
