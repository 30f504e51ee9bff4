"""``deploy/lab``: its commands."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from random import Random

from deploy.uml import cluster, faults, network
from deploy.uml.command import Trouble
from deploy.uml.guest import NAME, ensure_guest
from deploy.uml.image import ensure_image
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from deploy.uml.place import NAMES, place
from deploy.uml.show import show

Options = argparse.Namespace


def main() -> int:
    """Return the exit code; of ``ssh``, the remote command's."""
    options = _parser().parse_args()
    if os.geteuid() != 0:
        sys.exit("deploy/lab makes a network namespace, so it needs root.")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return int(options.do(Lab(place()), options) or 0)
    except Trouble as error:
        print(f"deploy/lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nInterrupted; “deploy/lab up” goes on, “deploy/lab clean” removes.", file=sys.stderr
        )
        return 130


def _prepare(lab: Lab, _options: Options) -> None:
    say = _clock_of_ours()
    image = ensure_image(lab.place, say)
    say(f"nodes can be started, from {image}")


def _up(lab: Lab, options: Options) -> None:
    say = _clock_of_ours()
    nodes = lab.up(options.count, say)
    node, example = nodes[0], "gantry join-token"
    if not options.bare:
        node, example = cluster.form(nodes, say), "gnt-node list"
        say("gnt-cluster verify is clean")
    print(f"\nTry: deploy/lab ssh {node.name} {example}\n     deploy/lab --help")


def _guest(lab: Lab, options: Options) -> None:
    master = ensure_guest(lab, options.name, _clock_of_ours())
    print(f"\nTry: deploy/lab ssh {master.name} gnt-instance console {options.name}")


def _show(lab: Lab, _options: Options) -> None:
    show(lab, _clock_of_ours())


def _chaos(lab: Lab, options: Options) -> int:
    from tests.lab.chaos.play import play  # help is to be had where nothing is installed yet

    seed = Random().randrange(10_000) if options.seed is None else options.seed
    wrong = play(lab, nodes=options.nodes, seed=seed, minutes=options.minutes)
    if not wrong:
        print("Nothing that was acknowledged is lost, and nothing is left over.")
        return 0
    print("── wrong", *wrong, sep="\n")
    print(
        "The lab is left as it is: deploy/lab status, deploy/lab logs NODE, "
        "deploy/lab ssh NODE gnt-job list; deploy/lab clean removes it.\n"
        f"The same orders and troubles again: deploy/lab chaos --seed {seed}"
    )
    return 1


def _figures(lab: Lab, options: Options) -> None:
    from tests.lab.figures import show_figures  # likewise

    show_figures(lab, options.names)


def _clock_of_ours() -> Callable[[str], None]:
    """Return what prints a line with the seconds since now before it."""
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)


def _ssh(lab: Lab, options: Options) -> int:
    node = lab.node(options.node)
    node.check_on()
    words = [*node.ssh()]
    if sys.stdin.isatty() and sys.stdout.isatty():
        words.append("-t")
    return subprocess.run([*words, *options.words], check=False).returncode


def _status(lab: Lab, _options: Options) -> None:
    nodes = lab.nodes()
    for node in nodes:
        print(f"{node.name:8} {node.spot.address:12} {node.state:7} {node.memory_mib:5} MiB")
    for rule in network.cuts(lab.place):
        print(f"cut: {rule}")
    if not nodes:
        print("The lab is empty; “deploy/lab up” makes it.")


def _logs(lab: Lab, options: Options) -> None:
    node = lab.node(options.node)
    if node.state == "on" and not options.console:
        print(node.run("journalctl --boot --no-pager --no-hostname"), end="")
    elif node.spot.console.exists():
        print(node.spot.console.read_text(errors="replace"), end="")


def _cut(lab: Lab, options: Options) -> None:
    one, other = lab.node(options.node).spot, lab.node(options.other).spot
    network.cut(lab.place, one, other)
    if not options.one_way:
        network.cut(lab.place, other, one)


def _kill(lab: Lab, options: Options) -> None:
    lab.node(options.node).power_off()


def _on_node(do: Callable[[Node, Options], None]) -> Callable[[Lab, Options], None]:
    return lambda lab, options: do(lab.node(options.node), options)


def _slow(node: Node, options: Options) -> None:
    faults.slow(node, delay_ms=options.delay, loss_percent=options.loss)


def _clock(node: Node, options: Options) -> None:
    faults.shift_clock(node, faults.named_seconds(options.seconds))


Does = Callable[[Lab, Options], object]
Command = Callable[..., argparse.ArgumentParser]  # of a name, a function, and words


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deploy/lab", description="A real cluster on this machine: nodes in user-mode Linux."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Does, text: str, *names: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(do=do)
        for argument in names:
            added.add_argument(argument, metavar=argument.upper())
        return added

    _add_uses(command)
    _add_faults(command)
    return parser


def _add_uses(command: Command) -> None:
    """Add what makes a lab, uses it and ends it."""
    up = command("up", _up, "start the nodes, make a cluster of them; or go on with it")
    up.add_argument(
        "count",
        nargs="?",
        type=int,
        default=3,
        metavar="N",
        help=f"of nodes, up to {len(NAMES)} (3): {', '.join(NAMES)}",
    )
    up.add_argument("--bare", action="store_true", help="stop before gnt-cluster init")
    command("prepare", _prepare, "fetch and make what nodes are started from, start none")
    guest = command("guest", _guest, "add an instance that runs Linux, unless it is there")
    guest.add_argument("name", nargs="?", default=NAME, metavar="NAME", help=f"({NAME})")
    command("show", _show, "show that a mirrored guest outlives its node; starts what it needs")
    chaos = command("chaos", _chaos, "break things under load, see after each round what holds")
    chaos.add_argument("--minutes", type=float, default=10.0, metavar="N", help="(10)")
    chaos.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help="repeats the order of what happens (another one each time)",
    )
    chaos.add_argument("--nodes", type=int, default=3, metavar="N", help="(3)")
    figures = command("figures", _figures, "measure what is mirrored, moved and copied")
    figures.add_argument("names", nargs="*", metavar="NAME", help="which (all)")
    ssh = command("ssh", _ssh, "open a shell on a node, or run a command there", "node")
    ssh.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    command("status", _status, "list the nodes, and the cuts between them")
    logs = command("logs", _logs, "print a node's journal, or its console while it is off", "node")
    logs.add_argument("--console", action="store_true", help="in any case")
    command("down", lambda lab, _: lab.down(print), "shut all nodes down; their disks stay")
    command("clean", lambda lab, _: lab.clean(print), "end all nodes, delete all but the image")


def _add_faults(command: Command) -> None:
    """Add what breaks it, and mends it again."""
    command("kill", _kill, "power a node off at once; “up” powers it on", "node")
    command("freeze", _on_node(lambda node, _: node.freeze()), "stop a node in its tracks", "node")
    command("thaw", _on_node(lambda node, _: node.thaw()), "end freeze", "node")
    cut = command("cut", _cut, "let nothing pass between two nodes", "node", "other")
    cut.add_argument("--one-way", action="store_true", help="only what NODE sends is lost")
    command("heal", lambda lab, _: network.heal(lab.place), "mend all cuts")
    slow = command("slow", _on_node(_slow), "delay what a node sends; 0 ends it", "node")
    slow.add_argument("--delay", type=int, default=200, metavar="MS", help="(200)")
    slow.add_argument("--loss", type=float, default=0.0, metavar="PERCENT", help="(0)")
    command(
        "fill",
        _on_node(lambda node, o: faults.fill(node, o.path)),
        "leave no room in the file system of a directory",
        "node",
        "path",
    )
    command(
        "empty", _on_node(lambda node, o: faults.empty(node, o.path)), "end fill", "node", "path"
    )
    command(
        "break-disk",
        _on_node(lambda node, _: faults.break_disk(node)),
        "let all I/O below the volume group fail",
        "node",
    )
    command("mend-disk", _on_node(lambda node, _: faults.mend_disk(node)), "end break-disk", "node")
    command(
        "break-system",
        _on_node(lambda node, _: faults.break_system(node)),
        "let the system disk fail until the node starts anew",
        "node",
    )
    command(
        "clock",
        _on_node(_clock),
        "put a node's clock forward (+300) or back (-300)",
        "node",
        "seconds",
    )


if __name__ == "__main__":
    sys.exit(main())
