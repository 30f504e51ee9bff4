"""How far a replica of the state has come."""

from common.messages import Order
from common.names import Epoch, Serial


class Stamp(Order, order=True):
    """Names one state: equal stamps mean equal states, whatever happened on the way.

    Later in ``(epoch, serial)`` is newer; ``digest`` (hex SHA-256) only confirms.
    """

    epoch: Epoch = Epoch(0)
    serial: Serial = Serial(0)
    digest: str = ""

    @property
    def age(self) -> tuple[int, int]:
        """What decides which of two states is newer."""
        return self.epoch, self.serial
