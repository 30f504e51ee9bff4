"""Opcodes, query fields and calls to nodes are as they were, or were changed on purpose."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import common.noderpc
from common.messages import to_json
from common.names import InstanceId, InstanceName, MiB
from common.noderpc.instances import GuestSpec, Instances
from common.rpc.declare import CallSpec, NodeService
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.registry import find_operation
from coordinator.queries.subject import SUBJECTS
from tests.golden import WIRE
from tests.support.golden import Schemas, check_golden


def test_opcodes_have_the_fields_that_they_had(update_golden: bool) -> None:
    operations = [find_operation(opcode) for opcode in CATALOGUE]
    schemas = Schemas(operations)

    def lines() -> Iterator[str]:
        for operation in operations:
            yield operation.opcode
            yield from schemas.fields(operation)
            yield ""
        yield from schemas.referred_to()

    check_golden(WIRE / "opcodes.txt", "\n".join(lines()) + "\n", update=update_golden)


def test_nodes_can_be_asked_what_they_could(update_golden: bool) -> None:
    calls = _calls()
    schemas = Schemas([call.arguments for call in calls], [call.returns for call in calls])

    def lines() -> Iterator[str]:
        for call in calls:
            flags = [
                name
                for name in ("safe_to_repeat", "fenced", "expires", "looks")
                if getattr(call, name)
            ]
            yield f"{call.name} within {call.timeout:g} s: {', '.join(flags)}"
            yield f"  at most {call.largest_question} bytes asked, {call.largest_answer} answered"
            yield from schemas.fields(call.arguments)
            yield f"  -> {schemas.other(call.returns)}"
            yield ""
        yield from schemas.referred_to()

    check_golden(WIRE / "node-calls.txt", "\n".join(lines()) + "\n", update=update_golden)


def test_what_has_its_default_is_not_sent_as_older_nodes_may_not_know_it() -> None:
    for call in _calls():
        assert call.arguments.__struct_config__.omit_defaults, call.name
    spec = GuestSpec(
        id=InstanceId("i"), name=InstanceName("web1"), hypervisor="kvm", memory=MiB(128), vcpus=1
    )
    assert to_json(Instances.calls["ensure_running"].arguments(guest=spec)) == (
        b'{"guest":{"id":"i","name":"web1","hypervisor":"kvm","memory":128,"vcpus":1}}'
    )


def test_lists_can_show_what_they_could(update_golden: bool) -> None:
    lines = [
        f"{what} {field.name}: {field.kind}, {field.title}"
        for what, subject in SUBJECTS.items()
        for _, field in sorted(subject.fields.items())
    ]
    check_golden(WIRE / "query-fields.txt", "\n".join(lines) + "\n", update=update_golden)


def test_a_difference_fails_until_it_is_said_to_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "colours.txt"
    check_golden(path, "red\n", update=True)
    check_golden(path, "red\n", update=False)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--update-golden.*-red\n\+blue"):
        check_golden(path, "blue\n", update=False)


def _calls() -> list[CallSpec]:
    for module in pkgutil.iter_modules(common.noderpc.__path__):
        import_module(f"{common.noderpc.__name__}.{module.name}")
    declared = [kind for kind in NodeService.__subclasses__() if "prefix" in vars(kind)]
    calls = [call for kind in declared for call in kind.calls.values()]
    return sorted(calls, key=lambda call: call.name)
