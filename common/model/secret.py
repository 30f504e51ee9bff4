"""What only the master candidates may know."""

from common.messages import Order


class Secret(Order):
    """Kept with the state, never shown, never exported; ``id`` is what it is for."""

    id: str  # "authority-key": PEM of the certificate authority's private key
    value: str
