"""The newest mastership that this node granted, on disk."""

from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.messages import Order, from_json, to_json
from common.names import LARGEST_COUNT, Epoch, NodeName
from noded.durable_file import read_durably, remove_durably, write_durably
from noded.system.threads import in_thread


class Grant(Order, omit_defaults=True):
    """``master`` may give orders of ``epoch``; orders of lower epochs are refused.

    Between a grant and its first order ``obeyed`` is who gave orders before: the one whom this
    node names, and who may come back if nothing becomes of the grant.
    """

    epoch: Epoch = Epoch(0)
    master: NodeName | None = None
    obeyed: NodeName | None = None

    @property
    def named(self) -> NodeName | None:
        """Whose orders were obeyed last."""
        return self.obeyed or self.master

    def promising(self, epoch: Epoch, master: NodeName) -> "Grant":
        """Return what is granted when ``master`` gets ``epoch``, and has given no order yet."""
        return Grant(
            epoch=epoch, master=master, obeyed=None if self.named == master else self.named
        )


class GrantFile:
    """Keeps one grant. A node that forgot it could obey two masters, so it is never guessed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Grant:
        """Read the grant; a node that never gave one has none.

        Raises:
            NodeFailure: the file cannot be read, kept or understood. noded must not start then.
        """
        if (text := read_durably(self._path)) is None:
            return Grant()
        try:
            grant = from_json(text, Grant, what=str(self._path))
        except InvalidRequest as error:
            raise self._damaged() from error
        if grant.epoch < 1 or not grant.master:
            raise self._damaged()
        return grant

    async def save(self, grant: Grant) -> None:
        """Store a grant; on disk when this returns.

        Raises:
            NodeFailure: the disk is full or broken; the old grant is kept.
        """
        await in_thread(write_durably, self._path, to_json(grant))

    async def forget(self) -> None:
        """Delete the grant: the node has left its cluster."""
        await in_thread(remove_durably, self._path)

    def _damaged(self) -> NodeFailure:
        return NodeFailure(
            f"The file {self._path} is damaged, so this node does not know which master it "
            "promised to obey. Copy the same file from the master, or write it anew with an epoch "
            'no lower than there, as in {"epoch":7,"master":"alpha.example.com"}; an epoch has at '
            f"most {len(str(LARGEST_COUNT))} digits.",
            path=str(self._path),
        )
