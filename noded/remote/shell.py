"""Run a line as root, where root of this node allows it."""

from common.errors import NodeFailure
from common.noderpc.remote import COMMAND_S, MOST_OUTPUT, Ended
from noded.remote.rules import Rules
from noded.system.execute import execute

# The line is a word of its own, so that nothing in it can end the shell that tells its status.
_TELLING = '/bin/sh -c "$1" 2>&1; printf "\\n%d" "$?"'


async def run_shell(line: str) -> Ended:
    """Run a line by a shell to its end, and tell how it ended: 128 and more is by a signal.

    Raises:
        CommandFailed: it cannot be started, or took too long and was killed with its children.
    """
    done = await execute(
        "/bin/sh", "-c", _TELLING, "sh", line, timeout_s=COMMAND_S, streams_as_one=True
    )
    output, _, status = done.stdout.decode(errors="replace").rpartition("\n")
    return Ended(status=int(status), output=output[-MOST_OUTPUT:])


def check_shell(rules: Rules) -> None:
    """Refuse commands unless root of this node allows them.

    Raises:
        NodeFailure: says how.
    """
    if not rules.has_shell:
        raise NodeFailure(
            "No commands of the master's are run on this node; its root allows them by the line "
            f"“shell” in {rules.source}.",
            path=rules.source,
        )
