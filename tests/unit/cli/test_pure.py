import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from coordinator.cli.cell import cell, format_moment, plain
from coordinator.cli.keyval import (
    parse_changes,
    parse_devices,
    parse_identkeyval,
    parse_keyval,
    parse_numbered,
    split_escaped,
    with_sizes,
)
from coordinator.cli.table import table
from coordinator.cli.tree import tree

WORD = st.text(min_size=1).filter(lambda text: "=" not in text)


@given(st.lists(st.text(), min_size=1))
def test_escaped_commas_survive(parts: list[str]) -> None:
    text = ",".join(part.replace("\\", "\\\\").replace(",", "\\,") for part in parts)
    assert split_escaped(text) == parts


@given(st.dictionaries(WORD.filter(lambda k: not k.startswith(("no_", "-"))), WORD, max_size=5))
def test_keyval_reads_back(values: dict[str, str]) -> None:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace(",", "\\,")

    text = ",".join(f"{escape(key)}={escape(value)}" for key, value in values.items())
    assert parse_keyval(text) == values


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_keyval, parse_identkeyval, lambda text: parse_devices([text]),
                  lambda text: parse_changes([text])):  # fmt: skip
        try:
            parse(text)
        except InvalidRequest as error:
            assert error.message.endswith(".")  # noqa: PT017 -- either outcome is fine


def test_keyval_forms() -> None:
    assert parse_keyval("acpi=true,no_vga,-boot,pae,args=a=b\\,c") == {
        "acpi": "true", "vga": False, "boot": None, "pae": True, "args": "a=b,c",
    }  # fmt: skip
    assert parse_keyval("") == {}
    assert parse_identkeyval("kvm:acpi=no") == ("kvm", {"acpi": "no"})
    assert parse_identkeyval("remove") == ("remove", {})


def test_devices_are_numbered_from_nought_without_gaps() -> None:
    assert parse_devices(["1:size=1G", "0:size=64M,mode=ro"]) == [
        {"size": 64, "mode": "ro"}, {"size": 1024},
    ]  # fmt: skip
    for texts, told in (
        (["1:size=1"], "Number 0 is missing"),
        (["0:size=1", "0:size=2"], "twice"),
        (["x:size=1"], "no number"),
        (["size=1"], "does not say what it is for"),
        (["0:size=12Q"], "“12Q” is no size"),
    ):
        with pytest.raises(InvalidRequest, match=told):
            parse_devices(texts)


def test_devices_are_added_changed_and_removed_as_with_ganeti() -> None:
    texts = ["add", "add:link=br0", "1:add,ip=192.0.2.7", "0:ip=none", "eth2:modify,name=inner",
             "remove", "2:remove", "eth2:remove", "-1:ip=192.0.2.8", "0:size=1G"]  # fmt: skip
    assert parse_changes(texts) == [
        ["add", -1, {}], ["add", -1, {"link": "br0"}], ["add", 1, {"ip": "192.0.2.7"}],
        ["modify", 0, {"ip": "none"}], ["modify", "eth2", {"name": "inner"}],
        ["remove", -1, {}], ["remove", 2, {}], ["remove", "eth2", {}],
        ["modify", -1, {"ip": "192.0.2.8"}], ["modify", 0, {"size": 1024}],
    ]  # fmt: skip
    for text, told in (
        ("0:add,remove", "add and remove"),
        ("0:remove,ip=192.0.2.7", "ip cannot be set"),
        ("remove:ip=192.0.2.7", "ip cannot be set"),
    ):
        with pytest.raises(InvalidRequest, match=told):
            parse_changes([text])


def test_sizes_may_be_default() -> None:
    assert with_sizes({"maxmem": "1G", "size": "default", "vcpus": "2"}) == {
        "maxmem": 1024, "size": "default", "vcpus": "2",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["=1", "a=1,a=2", ",", "a=1,", "x\\"])
def test_what_keyval_refuses(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_keyval(text)


@pytest.mark.parametrize(
    ("status", "value", "kind", "text"),
    [
        (0, True, "bool", "Y"),
        (0, False, "bool", "N"),
        (0, 1536, "unit", "1.5G"),
        (0, "auto", "unit", "auto"),
        (0, None, "text", "-"),
        (0, ["a", 1, None], "other", "a,1,-"),
        (0, {"a": True, "b": [1, 2]}, "other", "a=Y,b=1,2"),
        (0, "a\x1b[31m\nb", "text", "a [31m b"),
        (0, [100, 5], "moment", "1970-01-01 00:01:40.000005"),
        (0, [[100, 5], None], "moment", "1970-01-01 00:01:40.000005,-"),
        (0, 1e99, "timestamp", "1e+99"),
        (1, None, "text", "??"),
        (2, None, "text", "?"),
        (3, None, "text", "-"),
        (4, None, "text", "*"),
        (9, None, "text", "??"),
    ],
)
@pytest.mark.usefixtures("root")
def test_cells(status: int, value: object, kind: str, text: str) -> None:
    assert cell(status, value, kind) == text


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8,
))  # fmt: skip
def test_any_value_is_a_line(value: object) -> None:
    for text in (plain(value), format_moment(value), *(cell(0, value, k) for k in ("unit", "x"))):
        assert "\n" not in text


@given(
    st.lists(st.lists(st.text("ab ", max_size=5), min_size=3, max_size=3), max_size=5),
    st.booleans(),
)
def test_columns_line_up(rows: list[list[str]], headers: bool) -> None:
    titles = ("One", "Two", "Three") if headers else None
    lines = list(table(titles, rows, right=(False, True, True)))
    assert len(lines) == len(rows) + headers
    assert len({len(line) for line in lines}) <= 1


def test_the_last_column_is_padded_only_to_the_left() -> None:
    assert list(table(None, [["a", "b"], ["aa", "bb"]], right=(True, False))) == [" a b", "aa bb"]
    assert list(table(("T",), [], right=(True,))) == ["T"]
    assert list(table(None, [], right=(True,))) == []
    split = table(("A", "B"), [["1", "2"]], right=(True, True), separator="|")
    assert list(split) == ["A|B", "1|2"]


def test_trees() -> None:
    told = {"a": 1, "b": {"c": True, "d": {}}, "e": [{"f": None, "g": 2}, "h", {}, []], "i": []}
    assert "\n".join(tree(told)) == (
        "a: 1\nb:\n  c: yes\n  d: -\ne:\n  - f: -\n    g: 2\n  - h\n  - -\n  - -\ni: -"
    )


def test_numbered_things_are_read_with_what_is_to_be_different() -> None:
    assert parse_numbered(["2", "0:size=10G,mode=ro"]) == [
        [2, {}], [0, {"size": 10240, "mode": "ro"}],
    ]  # fmt: skip
    for bad, said in ((["x"], "no number"), (["0", "0:size=1G"], "twice"), (["0:size=x"], "size")):
        with pytest.raises(InvalidRequest, match=said):
            parse_numbered(bad)
