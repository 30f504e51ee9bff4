"""What only the master candidates may know."""

from common.model.stored import Stored

AUTHORITY_KEY, AUTHORITY_CERTIFICATE = "authority-key", "authority-certificate"
NEXT_KEY, NEXT_CERTIFICATE = "next-authority-key", "next-authority-certificate"  # while replaced
CONFD_KEY = "confd-key"  # by which programs ask about the configuration; the master makes it
DOMAIN_KEY = "cluster-domain-secret"  # what clusters know that move instances to one another
REST_USERS = "rest-users"  # who may use the REST interface, in the form of its file
REST_CERTIFICATE = "rest-certificate"  # what that shows its clients, PEM, and the key of it


class Secret(Stored, kw_only=True):
    """Kept with the state, never shown, never exported; ``id`` is what it is for."""

    id: str  # "authority-key": PEM of the certificate authority's private key
    value: str
