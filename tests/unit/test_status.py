"""What the pages of status say is so."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from coordinator.cli.commands import AREAS, UMBRELLA
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.ganeti.opcodes import opcodes
from coordinator.operations.registry import find_operation
from coordinator.queries.subject import SUBJECTS
from tests.support.golden import check_golden

PROJECT = Path(__file__).parents[2]
FEATURES = PROJECT / "docs/status.md"
COMMANDS = PROJECT / "docs/status-commands.md"
OPCODES = PROJECT / "docs/status-opcodes.md"
FIELDS = PROJECT / "docs/status-fields.md"
GANETIS_FIELDS = PROJECT / "tests/unit/queries/fields.json"

STATES = {"yes", "partly", "no", "otherwise"}

_TEST = re.compile(r"`(tests/[\w/.]+?\.py)(?:::(\w+))?`")


def rows(page: Path) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables on a page, without their headings."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| Feature", "| Command")):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def test_a_feature_is_shown_by_tests_that_exist() -> None:
    told = list(rows(FEATURES))
    assert told
    for feature, state, shown in told:
        assert state in STATES, feature
        named = _TEST.findall(shown)
        assert named or state in ("no", "otherwise"), f"{feature}: say which test shows it"
        for file, test in named:
            text = (PROJECT / file).read_text(encoding="utf-8")
            assert not test or f"def {test}(" in text, f"{feature}: {file} has no {test}"


def test_every_command_of_ours_is_told() -> None:
    told = {command.strip("`") for command, state, *_ in rows(COMMANDS) if state != "no"}
    ours = {f"{program} {name}" for program, area in AREAS.items() for name in area.commands}
    assert told == ours | {f"gantry {name}" for name in UMBRELLA}


def test_every_opcode_is_told_with_what_is_obeyed(update_golden: bool) -> None:
    check_golden(OPCODES, "\n".join(_opcodes()) + "\n", update=update_golden)


def test_every_field_of_lists_is_told(update_golden: bool) -> None:
    theirs = json.loads(GANETIS_FIELDS.read_text(encoding="utf-8"))
    check_golden(FIELDS, "\n".join(_fields(theirs)) + "\n", update=update_golden)


def _fields(theirs: Mapping[str, Iterable[str]]) -> Iterator[str]:
    yield "# Fields of lists"
    yield ""
    yield "What Ganeti's lists can show of each kind of object, and ours. A field `hv/…` is a"
    yield "parameter of a hypervisor; those that are missing cannot be set. This page is written"
    yield "by `tests/unit/test_status.py`; see [the status](status.md) of all."
    yield ""
    yield "| Kind | Of Ganeti's | Missing | Ours |"
    yield "|---|---|---|---|"
    for kind, names in theirs.items():
        known = SUBJECTS[kind].fields if kind in SUBJECTS else {}
        ours = {re.sub(r"/\d+$", "/N", name) for name in known}
        missing = [name for name in names if name not in ours]
        more = sorted(ours - set(names))
        count = f"{len(ours) - len(more)} of {len(set(names))}"
        yield f"| {kind} | {count} | {_code(missing)} | {_code(more)} |"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _opcodes() -> Iterator[str]:
    yield "# Opcodes"
    yield ""
    yield "Ganeti's opcodes and their parameters: an operation has a field for it, or it is refused"
    yield "by name unless it asks for nothing ([60](adr/0060-a-catalogue-and-a-table-of-facts.md))."
    yield "This page is written by `tests/unit/test_status.py`; see [the status](status.md) of all."
    known = opcodes()
    theirs = [opcode for opcode in CATALOGUE if opcode in known]
    yield ""
    yield f"{len(theirs)} of {len(known)} are operations."
    for opcode in theirs:
        yield from _parameters(opcode)
    yield ""
    yield "## Not supported yet"
    yield ""
    yield _code(opcode for opcode in known if opcode not in CATALOGUE)


def _parameters(opcode: str) -> Iterator[str]:
    entry, theirs = CATALOGUE[opcode], opcodes()[opcode]
    ours = find_operation(opcode).__struct_encode_fields__
    yield ""
    yield f"## {opcode}"
    yield ""
    told = {
        "Command": [entry.command] if entry.command else [],
        "Route": [entry.route] if entry.route else [],
        "Fields": [name for name in theirs if name in ours],
        "Ours": [name for name in ours if name not in theirs],
        "Refused unless they ask for nothing": [name for name in theirs if name not in ours],
    }
    lines = [f"- {word}: {_code(names)}" for word, names in told.items() if names]
    yield from lines or ["It takes nothing."]
