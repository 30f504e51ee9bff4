"""Other versions of Gantry: with other kinds of objects, or other versions of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from coordinator.state.kinds import KINDS, Kind


@contextmanager
def knowing(*kinds: Kind[Any, Any]) -> Iterator[None]:
    """Be a version that has ``kinds``, instead of those of the same names or besides."""
    by_name = KINDS.by_name | {kind.name: kind for kind in kinds}
    by_type = {type_: by_name.get(kind.name, kind) for type_, kind in KINDS.by_type.items()}
    by_type |= {kind.type: kind for kind in kinds}
    with patch.dict(KINDS.by_name, by_name), patch.dict(KINDS.by_type, by_type):
        yield
