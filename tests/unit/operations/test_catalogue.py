"""The catalogue of operations is complete, and says of each what is so."""

import re
from pathlib import Path
from string import Formatter

import pytest

from coordinator.operations.base import REGISTRY
from coordinator.operations.catalogue import CATALOGUE, Entry, commands_of
from coordinator.operations.registry import find_operation, load_all

OPERATIONS = Path(__file__).parents[3] / "coordinator/operations"
ENTRIES = sorted(CATALOGUE.values())

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.opcode)


def test_every_operation_has_one_entry_in_the_order_of_opcodes() -> None:
    load_all()
    declared = [
        opcode
        for source in OPERATIONS.glob("**/*.py")
        for opcode in re.findall(r'^@operation\("(\w+)"\)', source.read_text(), re.MULTILINE)
    ]
    assert sorted(declared) == sorted(REGISTRY) == list(CATALOGUE)


@every_entry
def test_an_operation_is_in_the_module_of_its_entry(entry: Entry) -> None:
    assert find_operation(entry.opcode).__module__ == f"coordinator.operations.{entry.module}"


@every_entry
def test_a_command_takes_many_of_what_it_takes_first(entry: Entry) -> None:
    parameters = find_operation(entry.opcode).parameters()
    arguments = [name for name, parameter in parameters.items() if parameter.is_argument]
    assert entry.many in ("", *arguments[:1])
    kind = entry.command.partition(" ")[0].removeprefix("gnt-")
    assert entry.many in ("", f"{kind}_name")  # what the words of a command choose


@every_entry
def test_a_command_is_explained_in_lists_of_commands(entry: Entry) -> None:
    assert bool(entry.command) == bool(entry.help)
    assert not entry.help.endswith(".")


@every_entry
def test_what_a_command_ignores_is_no_option_of_its_own(entry: Entry) -> None:
    parameters = find_operation(entry.opcode).parameters().values()
    options = {flag for parameter in parameters for flag in parameter.flags}
    assert options.isdisjoint(entry.ignored)


@every_entry
def test_a_route_names_fields_of_its_operation(entry: Entry) -> None:
    fields = {name for _, name, _, _ in Formatter().parse(entry.route) if name}
    assert fields <= set(find_operation(entry.opcode).__struct_fields__)
    assert re.fullmatch(r"|(GET|PUT|POST|DELETE) /2/\S+", entry.route)


def test_commands_and_routes_are_given_once() -> None:
    for given in ([e.command for e in ENTRIES if e.command], [e.route for e in ENTRIES if e.route]):
        assert len(given) == len(set(given))


def test_a_programs_commands_are_found_by_its_whole_name() -> None:
    assert commands_of("gnt-instance")["startup"] is CATALOGUE["OP_INSTANCE_STARTUP"]
    assert commands_of("gnt-inst") == {}
