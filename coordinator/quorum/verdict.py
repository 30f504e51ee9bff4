"""What comes out of asking the nodes."""

from dataclasses import dataclass

from common.model.stamp import Stamp
from common.names import Epoch, JobId, NodeName
from coordinator.quorum.objection import Objection


@dataclass(frozen=True, slots=True)
class Won:
    """Go on."""

    epoch: Epoch  # to ask every node for; after ``confirm``, ours
    newest: NodeName  # has the state to start from: fetch it, unless it is this node
    stamp: Stamp  # of that state
    newest_job: JobId  # highest job id any node has seen; new ids start above it
    overridden: tuple[Objection, ...] = ()  # set aside by the operator's word: to be recorded


@dataclass(frozen=True, slots=True)
class Wait:
    """Undecided: these nodes have neither answered nor failed, and their answer counts."""

    pending: frozenset[NodeName]
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """No answer still to come can change this."""

    objection: Objection

    @property
    def reason(self) -> str:
        return str(self.objection)


Verdict = Won | Wait | Refused
