"""JSON that an operator has in a file: a list of objects."""

import json
from pathlib import Path
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.telling import no_json

LARGEST_BYTES = 16 << 20


def read_objects(name: str, of: str, *needed: str) -> list[dict[str, Any]]:
    """Read a list of objects.

    Args:
        name: of the file; - is standard input.
        of: what it has to be, for the complaint.
        needed: what each object has to have.

    Raises:
        InvalidRequest: the file cannot be read, or is another thing.
    """
    what, path = f"The file “{name}”", Path(name)
    if name == "-":
        what, path = "Standard input", Path("/dev/stdin")
    try:
        with path.open(encoding="utf-8") as file:
            told = json.loads(file.read(LARGEST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else no_json(error)
        raise InvalidRequest(f"{what} cannot be read: {why}.") from error
    is_list = isinstance(told, list) and all(isinstance(one, dict) for one in told)
    if not is_list or not all(key in one for one in told for key in needed):
        raise InvalidRequest(f"{what} is not {of}.")
    return list(told)
