"""One request to the REST interface, as far as it has been understood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from coordinator.rapi.failures import refused

BAD = HTTPStatus.BAD_REQUEST


@dataclass(frozen=True, slots=True)
class Call:
    """``named`` has what the path names, ``body`` what the JSON text says: None if there is none.

    Methods that read a query argument refuse with 400 what is not of its form.
    """

    method: str
    path: str
    named: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Any
    user: str  # empty: somebody
    source: str  # the address it comes from

    def flag(self, name: str, *, default: bool = False) -> bool:
        return bool(self.number(name, default=int(default)))

    def number(self, name: str, *, default: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError as error:
            raise refused(BAD, f"Invalid value for the '{name}' parameter") from error

    def text(self, name: str) -> str | None:
        values = self.query.get(name)
        return values[0] if values else None

    def required(self, name: str) -> str:
        if (text := self.text(name)) is None:
            raise refused(BAD, f"Missing the required '{name}' parameter")
        return text

    def members(self) -> dict[str, Any]:
        """Return the body, which has to be an object; no body is an empty one."""
        if self.body is None:
            return {}
        if not isinstance(self.body, dict):
            kind = type(self.body).__name__
            raise refused(BAD, f"Body contents: Type is '{kind}', but 'dict' is expected")
        return dict(self.body)

    def member(self, name: str, kind: type, default: Any) -> Any:
        """Return a part of the body, which has to be of a kind."""
        value = self.members().get(name, default)
        is_other = isinstance(value, bool) and kind is int
        if value is not default and (is_other or not isinstance(value, kind)):
            told = type(value).__name__
            raise refused(
                BAD, f"'{name}' parameter: Type is '{told}', but '{kind.__name__}' is expected"
            )
        return value


def parse_query(text: str) -> dict[str, list[str]]:
    """Read a query string; arguments without a value count as not given, as Ganeti has it."""
    try:
        return parse_qs(text, max_num_fields=1000)
    except ValueError as error:
        raise refused(BAD, f"The query cannot be read: {error}.") from error
