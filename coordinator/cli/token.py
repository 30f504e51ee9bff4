"""``gantry join-token``: what lets a cluster take this node in."""

from collections.abc import Sequence

from common.errors import Conflict, InvalidRequest
from common.paths import Paths
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell
from coordinator.cli.whereabouts import this_node


def show(command: str, words: Sequence[str]) -> int:
    """Print the token that gantry-noded keeps while its node is in no cluster."""
    description = (
        "Print this node's join token. Who has it can take the node into a cluster: carry it to "
        "the master, and give it to “gnt-node add --token-file”."
    )
    parser = Parser(command, description)
    add_json(parser)
    options = parser.parse_args(words)
    paths = Paths()
    try:
        token = paths.join_token.read_text().strip()
    except FileNotFoundError as error:
        name = this_node(paths)
        if name is not None:
            raise Conflict(
                f"This node, {name}, is in a cluster already; it has no token."
            ) from error
        raise Conflict(
            "This node has no join token; gantry-noded makes one when it starts. Is it running?"
        ) from error
    except PermissionError as error:
        raise InvalidRequest("Only root may read the join token.") from error
    tell(options, {"token": token}, token)
    return 0
