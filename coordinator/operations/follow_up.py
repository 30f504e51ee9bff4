"""What an operation leaves to others, each in a job of its own."""

from collections.abc import Sequence
from typing import Any

from common.messages import Order


class FollowUp(Order):
    """An operation that another one has submitted.

    ``choice`` is what the operation's own ``choose`` would return, where the other one has settled
    that already, and has promised what it takes. It is no parameter: no client can give one.
    """

    input: dict[str, Any]  # OP_ID and the parameters
    choice: Any = None


FollowUps = Sequence[Sequence[FollowUp]]  # jobs
