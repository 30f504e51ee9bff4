"""Words for what does not fit, held against what msgspec says."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from common.complaints import in_words
from common.errors import GntError, InvalidRequest
from common.messages import from_builtins
from common.model.template import DiskTemplate
from coordinator.cli.spelled import read_order
from coordinator.operations.base import Operation, read_operation
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.node.restricted import RunRestricted
from coordinator.operations.registry import find_operation

ORDER = {"instance_name": "web1", "disk_template": "diskless"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"warp": 9}, "there is no “warp”"),
        ({"disks": [{"size": 1, "warp": 9}]}, "there is no “warp” in disks[0]"),
        ({"disks": [{"mode": "rw"}]}, "disks[0]: a disk has at least 1 MiB, as in size=10G"),
        ({"disks": [{"siez": 1}]}, "there is no “siez” in disks[0], but “size”."),
        ({"disks": [{"size": 1, "mode": "rx"}]}, "disks[0].mode cannot be 'rx': there is rw, ro."),
        ({"hypervisr": "kvm"}, "there is no “hypervisr”, but “hypervisor”."),
        ({"start": "yes"}, "start is true or false, not text"),
        ({"disks": 5}, "disks is a list, not a whole number"),
        ({"pnode": 5}, "pnode is text or nothing, not a whole number"),
        ({"disk_template": "floppy"}, "disk_template cannot be 'floppy'"),
        ({"disks": [{"size": "12Q"}]}, "disks[0]: “12Q” is no size"),
        ({"tags": [1]}, "tags[0] is text, not a whole number"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        from_builtins(ORDER | wrong, CreateInstance, what="this")
    assert caught.value.message.startswith(f"Cannot read this: {told}")
    assert "`" not in caught.value.message


@pytest.mark.parametrize(
    ("kind", "words", "told"),
    [
        (TakeSnapshot, {"name": "nice~one"}, "NAME is 1 to 64 letters, digits and “_.+-”"),
        (CreateInstance, {"disks": [{"mode": "rw"}]}, "--disk 0: a disk has at least 1 MiB"),
        (CreateInstance, {"disks": [{"size": 1, "mode": "rx"}]}, "--disk 0:mode cannot be 'rx'"),
        (CreateInstance, {"disks": [{"siez": 1}]}, "there is no “siez” in --disk 0, but “size”."),
        (CreateInstance, {"disk_template": "floppy"}, "--disk-template cannot be 'floppy'"),
        (RunRestricted, {"command": "a b", "nodes": []}, "command is 1 to 128 letters, digits"),
    ],
)
def test_commands_speak_of_their_own_words(
    kind: type[Operation[Any, Any]], words: dict[str, Any], told: str
) -> None:
    wire = {"OP_ID": kind.opcode, "instance_name": "web1", "disk_template": "file"} | words
    fields = {"OP_ID", *kind.__struct_encode_fields__}
    with pytest.raises(InvalidRequest) as caught:
        read_order({key: value for key, value in wire.items() if key in fields})
    assert caught.value.message.startswith(f"Cannot read the words of the command: {told}")


@pytest.mark.parametrize(
    "odd", [5, -1, 1.5, True, "\0{x}", [{"a": {}}], {"a": {"b": [1]}}, [[["x"]]]], ids=str
)
def test_whatever_a_field_is_given_is_read_or_refused_in_words(odd: Any) -> None:
    for opcode in CATALOGUE:
        for field in find_operation(opcode).__struct_encode_fields__:
            with suppress(GntError):
                read_operation({"OP_ID": opcode, field: odd})


def test_every_pattern_of_an_operation_is_put_in_words() -> None:
    for opcode in CATALOGUE:
        for field in msgspec.structs.fields(find_operation(opcode)):
            _, schema = msgspec.json.schema_components([field.type])
            shown = [msgspec.json.schema(field.type), *schema.values()]
            assert not [each for each in _patterns(shown) if "description" not in each], field


def _patterns(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _patterns(each)


def test_other_words_stay_as_they_are() -> None:
    assert in_words("disk on fire") == "disk on fire"
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(5, DiskTemplate)
    assert "`" not in in_words(str(caught.value))
