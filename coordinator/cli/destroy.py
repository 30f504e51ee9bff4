"""``gnt-cluster destroy``: what is left when the coordinator has done its part."""

import asyncio
import sys
from collections.abc import Sequence

from common.paths import Paths
from coordinator.cli import service
from coordinator.cli.confirm import NeedsConfirmation
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell


def destroy(command: str, words: Sequence[str]) -> int:
    """Have every node forget the cluster, this one last."""
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
