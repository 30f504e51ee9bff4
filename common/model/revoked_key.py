"""A key that opens nothing any more, though its certificate is signed by the authority still."""

from common.model.stored import Stored
from common.names import KeyId


class RevokedKey(Stored, kw_only=True):
    """``number`` says where it is on the list that nodes are told: the latest has the highest."""

    id: KeyId
    number: int
