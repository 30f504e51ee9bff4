"""A network card of an instance."""

from typing import Any

from common.model.entity import Entity


class Nic(Entity, kw_only=True):
    name: str = ""
    mac: str
    ip: str = ""
    nicparams: dict[str, Any] = {}
