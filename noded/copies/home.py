"""What noded keeps of one side of a copy."""

from contextlib import suppress

from common.messages import from_json, to_json
from common.noderpc.copies import Offer
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

    def told(self) -> Told | None:
        return read_status(self.directory / "status.json")
