"""``gnt-debug iallocator``: what an allocator is asked, and answers."""

from collections.abc import Sequence

from coordinator.cli.derive import add_fields, read_fields
from coordinator.cli.job_options import common_fields
from coordinator.cli.parser import Parser
from coordinator.cli.storage import run
from coordinator.operations.registry import find_operation

OPCODE = "OP_TEST_ALLOCATOR"


def ask(command: str, words: Sequence[str]) -> int:
    """Print the text as it is, for programs."""
    operation = find_operation(OPCODE)
    parser = Parser(command, operation.__doc__ or "")
    add_fields(parser, operation)
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    parser.add_argument("--dry-run", action="store_true", help="nothing is done in any case")
    parser.set_defaults(reason=None)
    options = parser.parse_args(words)
    fields = read_fields(operation, options)
    print(run({"OP_ID": OPCODE} | fields | common_fields("gnt-debug", options)))
    return 0
