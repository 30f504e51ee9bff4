"""A network card of an instance."""

from typing import Any

from common.model.entity import Entity
from common.names import NicId


class Nic(Entity, kw_only=True):
    uuid: NicId
    name: str = ""
    mac: str
    ip: str = ""
    nicparams: dict[str, Any] = {}
