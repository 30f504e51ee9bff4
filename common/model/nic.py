"""A network card of an instance."""

from typing import Any

from common.model.entity import Entity
from common.names import NetworkId, NicId


class Nic(Entity, kw_only=True):
    uuid: NicId
    name: str = ""
    mac: str
    ip: str = ""
    network: NetworkId = NetworkId("")  # says how it is plugged in; "": ``nicparams`` do
    nicparams: dict[str, Any] = {}
