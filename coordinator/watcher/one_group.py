"""A round for one group of nodes: it hears of no instances elsewhere.

What is the whole cluster's is left to rounds for all: archiving, the operator's scripts, and
switching silent nodes off, which depends on how many there are.
"""

from common.errors import NotFound
from coordinator.watcher.conversation import Request, Round, Told, asked


def within(group: str, talk: Round) -> Round:
    """Hold a round about the instances whose primary nodes are in a group.

    Args:
        group: its name or UUID.
        talk: the round, which would be about all.

    Raises:
        NotFound: there is no such group.
    """
    which = ["|", ["==", "name", group], ["==", "uuid", group]]
    found = yield from asked("group", ["name"], which)
    if not found:
        raise NotFound(f"There is no group “{group}”; “gnt-group list” tells which there are.")
    return (yield from _narrowed(found[0][0], talk))


def _narrowed(name: str, talk: Round) -> Round:
    request = next(talk)
    while True:
        if request.method == "Query" and request.args[0] == "instance":
            kind, fields, which = request.args
            request = Request("Query", (kind, fields, ["&", ["==", "pnode.group", name], which]))
        answer = yield request
        try:
            request = talk.send(answer)
        except StopIteration as end:
            told: list[Told] = end.value
            return told
