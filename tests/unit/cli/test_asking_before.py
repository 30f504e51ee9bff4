"""Commands that ask before they do anything: each of them does ask, whatever it is about."""

from collections.abc import Iterator

import msgspec
import pytest

from coordinator.operations.catalogue import CATALOGUE, Entry
from coordinator.operations.parameter import parameters_of
from coordinator.operations.registry import find_operation
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

ASKING = [entry for entry in CATALOGUE.values() if entry.command and entry.confirm]
KNOWN = {"instance_name": "web1.example.com", "node_name": "beta", "storage_type": "lvm-vg"}


@pytest.mark.parametrize("entry", ASKING, ids=lambda entry: entry.command)
def test_every_command_with_a_question_asks_it(
    run: Run, coordinator: ScriptedCoordinator, entry: Entry
) -> None:
    ran = run(" ".join([entry.command, *_least_words(entry)]))
    question = entry.confirm.partition("{}")[0]
    assert (ran.code, ran.out) == (13, "")
    assert question in ran.err
    assert coordinator.submitted == []


def _least_words(entry: Entry) -> Iterator[str]:
    """Return what the command cannot do without, of objects that there are."""
    kind = find_operation(entry.opcode)
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    for name, parameter in parameters_of(kind).items():
        word = KNOWN.get(name, "other")
        if parameter.is_argument and (name in required or name == entry.many):
            yield word
        elif name in required and not parameter.is_hidden:
            yield f"{parameter.flags[-1]}={word}"
