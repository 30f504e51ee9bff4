"""``hail``: read a request in Ganeti's iallocator protocol, print the answer."""

from __future__ import annotations

import gc
import os
import sys

from common.errors import GntError, InvalidRequest
from common.printable import harmless
from coordinator.htools.options import Option, Parsed, Takes, Usage, number, parse, yes_no
from coordinator.htools.program import COMMON, help_text, own_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, TextIO

KVM_NODE_MEMORY = 4096
"""MiB that hail reckons a KVM node needs for itself, whatever the node says."""

_LARGEST_INPUT = 512 << 20  # characters; a request for 2,000 nodes has 10 million

OPTIONS = (
    Option(
        key="print_nodes", name="print-nodes", letter="p", argument="FIELDS", takes=Takes.PERHAPS,
        without="", help="print the nodes before and after, on standard error",
    ),
    Option(
        key="save", name="save", letter="S", argument="FILE", takes=Takes.SOMETHING,
        help="save the cluster before and after to FILE.pre-ialloc and FILE.post-ialloc",
    ),
    Option(
        key="text", name="text-data", letter="t", argument="FILE", takes=Takes.SOMETHING,
        completes="file",
        help="take the cluster from FILE",
    ),
    Option(
        key="simulate", name="simulate", argument="SPEC", takes=Takes.SOMETHING,
        completes="string", repeats=True,
        help="take an empty cluster, 'alloc_policy,num_nodes,disk,ram,cpu' for each group",
    ),
    Option(
        key="verbose", name="verbose", letter="v", step=1, default=0,
        help="say on standard error why each node was refused; twice: what was asked, too",
    ),
    Option(
        key="ignore_dynu", name="ignore-dynu", default=False,
        help="disregard the reports of the monitoring agents",
    ),
    Option(
        key="ignore_soft_errors", name="ignore-soft-errors", default=False,
        help="ignore soft limits of nodes",
    ),
    Option(
        key="no_capacity_checks", name="no-capacity-checks", default=False,
        help="do not check that every node could still be emptied",
    ),
    Option(
        key="among", name="restrict-allocation-to", argument="NODE,...", takes=Takes.SOMETHING,
        completes="manynodes",
        help="allocate only on these nodes",
    ),
    Option(
        key="mond", name="mond", argument="CHOICE", takes=Takes.PERHAPS,
        completes="choices=yes,no", read=yes_no,
        default=False, help="ask all monitoring agents for the load: 'yes' or 'no'",
    ),
    Option(
        key="mond_data", name="mond-data", argument="FILE", takes=Takes.SOMETHING,
        completes="file",
        help="take the reports of the monitoring agents from FILE",
    ),
    Option(
        key="mond_xen", name="mond-xen", default=False,
        help="also look at what only Xen's collectors report",
    ),
    Option(
        key="kvm_node_memory", name="static-kvm-node-memory", argument="N", takes=Takes.SOMETHING,
        completes="integer",
        read=number("static node memory", int), default=KVM_NODE_MEMORY,
        help="MiB that a KVM node needs for itself; 0 to take what it reports",
    ),
    Option(
        key="strict", name="strict-compat", default=False,
        help="answer as Ganeti's hail does even where that is plainly wrong",
    ),
)  # fmt: skip


def main() -> NoReturn:
    """Entry point; the exit status is 0 even if nothing fits, as the protocol wants it."""
    gc.disable()  # all of a message is kept to the end, and looking through it again takes long
    try:
        status = run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = 1
    except OSError as error:
        sys.stderr.write(f"Error: cannot write the answer: {error.strerror}\n")
        status = 1
    os._exit(status)  # taking a large message apart piece by piece would be wasted time


def run(words: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """The command on given streams; what others wrote reaches no terminal as it came."""
    stdout, stderr = harmless(stdout), harmless(stderr)
    options = (*OPTIONS, *COMMON)
    try:
        parsed = parse(options, words)
    except Usage as error:
        stderr.write(f"Command line error: {error}\n\n{help_text('hail', options)}\n")
        return 2
    except InvalidRequest as error:
        stderr.write(f"Error while parsing command line arguments:\n{error}\n")
        return 1
    wanted = own_text("hail", options, parsed)
    if wanted:
        stdout.write(f"{wanted}\n")
        return 0
    try:
        line = _answer(_request_text(parsed, stdin), parsed, stderr)
    except GntError as error:
        stderr.write(f"Error: {error}\n")
        return 1
    except (OverflowError, MemoryError):
        stderr.write("Error: the request holds a number or a cluster too large to reckon with.\n")
        return 1
    except BrokenPipeError:  # whoever read our warnings has read enough
        return 1
    except (OSError, UnicodeDecodeError) as error:
        stderr.write(f"Error: cannot read the request: {error}\n")
        return 1
    stdout.write(f"{line}\n")
    return 0


def _request_text(parsed: Parsed, stdin: TextIO) -> str:
    if not parsed.arguments:
        raise InvalidRequest("This program needs an input file.")
    if len(parsed.arguments) > 1:
        raise InvalidRequest("Only one argument is accepted (the input file)")
    (name,) = parsed.arguments
    if name == "-":
        text = stdin.read(_LARGEST_INPUT + 1)
    else:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
            text = file.read(_LARGEST_INPUT + 1)
    if len(text) > _LARGEST_INPUT:
        raise InvalidRequest(f"The input has more than {_LARGEST_INPUT} characters.")
    return text


def _answer(text: str, parsed: Parsed, stderr: TextIO) -> str:
    from coordinator.iallocator.jsontext import parse

    message = parse(text)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting more costs 50 ms
    from coordinator.htools.hail_work import answer

    return answer(message, parsed, stderr)


if __name__ == "__main__":
    main()
