"""What noded keeps of one side of a copy."""

import os
from contextlib import suppress

from common.messages import from_json, to_json
from common.noderpc.copies import Offer
from noded.copies.confirmation import FILE as CONFIRMATION
from noded.copies.confirmation import confirm
from noded.copies.status import Told, read_status
from noded.system.process_home import ProcessHome


class Home(ProcessHome):
    """One side: of what is offered, or of what is fetched."""

    def keep(self, offer: Offer) -> None:
        self.write("offer.json", to_json(offer))

    def offer(self) -> Offer | None:
        with suppress(OSError):
            text = (self.directory / "offer.json").read_bytes()
            return from_json(text, Offer, what="an offer")
        return None

    def confirm(self) -> None:
        """Let the other side hear what it waits for."""
        descriptor = self.open(CONFIRMATION)
        try:
            confirm(descriptor)
        finally:
            os.close(descriptor)

    @property
    def is_to_come(self) -> bool:
        """Whether it is not there yet for sure, and nobody can hear that it is."""
        told = self.told()
        if told is None or told.fetched.is_there or told.fetched.has_ended:
            return False
        path = self.directory / CONFIRMATION
        return not (path.exists() and path.stat().st_size)

    @property
    def has_arrived(self) -> bool:
        """Whether all of it is known to be there."""
        told = self.told()
        return told is not None and (told.fetched.is_there or told.fetched.has_ended)

    def told(self) -> Told | None:
        return read_status(self.directory / "status.json")
