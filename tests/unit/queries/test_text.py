from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from coordinator.queries.field import Field, Kind, table
from coordinator.queries.filter import compile_filter
from coordinator.queries.text import glob_pattern, name_filter, parse


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ('status == "running"', ["==", "status", "running"]),
        ("status = 'running'", ["==", "status", "running"]),
        ("oper_ram < 512", ["<", "oper_ram", 512]),
        ("load >= 1.5", [">=", "load", 1.5]),
        ("x == -3", ["==", "x", -3]),
        ("disk.size/0 != 64", ["!=", "disk.size/0", 64]),
        ("admin_up", ["?", "admin_up"]),
        ("not admin_up", ["!", ["?", "admin_up"]]),
        ("not not a", ["!", ["!", ["?", "a"]]]),
        ('"db" in tags', ["=[]", "tags", "db"]),
        ("'db' not in tags", ["!", ["=[]", "tags", "db"]]),
        ("5 in disk.sizes", ["=[]", "disk.sizes", 5]),
        ("name =~ m/^web/", ["=~", "name", "^web"]),
        ("name !~ /^web/", ["!", ["=~", "name", "^web"]]),
        (r"name =~ m/a\/b/", ["=~", "name", "a/b"]),
        ("name =~ m|a|is", ["=~", "name", "(?is)a"]),
        ("name =~ m#a b#", ["=~", "name", "a b"]),
        ('name =~ "x"', ["=~", "name", "x"]),
        ('name =* "web?"', ["=~", "name", r"^web[^.](\..*)?$"]),
        ('name !* "w*"', ["!", ["=~", "name", r"^w[^.]*(\..*)?$"]]),
        ("a and b and c", ["&", ["?", "a"], ["?", "b"], ["?", "c"]]),
        ("a or b and c", ["|", ["?", "a"], ["&", ["?", "b"], ["?", "c"]]]),
        ("(a or b) and c", ["&", ["|", ["?", "a"], ["?", "b"]], ["?", "c"]]),
        (r'x == "a\"b"', ["==", "x", 'a"b']),
        ("notify", ["?", "notify"]),
    ],
)
def test_grammar(text: str, condition: list[Any]) -> None:
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "character 1"),
        ("(a", "“)”"),
        ("a ==", "the end"),
        ("a == b", "“b”"),
        ("a == 12Q", "12Q"),
        ("a b", "“and”, “or” or the end"),
        ("5 == a", "“in”"),
        ("and", "the name of a field"),
        ("name =~ m/x/q", "flags"),
        ("name =* web", "quotes"),
        ('name == "web', 'from “"web”'),
        ("not " * 60 + "a", "levels"),
        ("(" * 60 + "a" + ")" * 60, "levels"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert told in caught.value.message


FIELDS = table(
    Field(name, name, Kind.OTHER, "", lambda row, name=name: row[name])  # type: ignore[misc]
    for name in ("a", "b", "c")
)
CONDITION = st.recursive(
    st.sampled_from(["a", "b", "c", "a == 1", 'b != "x"', "2 in c", "c =~ /x/"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})")
        | inner.map(lambda text: f"not ({text})")
    ),
    max_leaves=8,
)


@given(CONDITION, st.booleans(), st.integers(0, 2), st.sampled_from(["x", [2], 2]))
def test_a_filter_means_what_it_says(text: str, a: bool, b: int, c: Any) -> None:
    found = compile_filter(parse(text), FIELDS)({"a": a, "b": b, "c": c})
    atoms = {
        "a == 1": "(a == 1)",
        'b != "x"': "True",
        "2 in c": "(c == [2])",
        "c =~ /x/": "(c == 'x')",
    }
    python = text
    for atom, meaning in atoms.items():
        python = python.replace(atom, meaning)
    assert found is bool(eval(python, {"a": a, "b": b, "c": c}))


@given(st.text(alphabet="ab ()=~!<>'\"/m|#^\\*?.1", max_size=30))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    try:
        condition = parse(text)
    except InvalidRequest:
        return
    assert condition[0] in ("|", "&", "!", "?", "==", "!=", "<", "<=", ">", ">=", "=~", "=[]")


def test_arguments_are_names_globs_or_a_filter() -> None:
    assert name_filter([], "name", force=False) is None
    assert name_filter(["web1", "w*"], "name", force=False) == [
        "|", ["==", "name", "web1"], ["=~", "name", r"^w[^.]*(\..*)?$"],
    ]  # fmt: skip
    assert name_filter(["up == 1"], "name", force=False) == ["==", "up", 1]
    assert name_filter(["up"], "name", force=True) == ["?", "up"]
    assert name_filter(["12"], "id", force=False, numeric=True) == ["|", ["==", "id", 12]]
    with pytest.raises(InvalidRequest, match="one argument"):
        name_filter(["a", "b"], "name", force=True)
    with pytest.raises(InvalidRequest, match="no number"):
        name_filter(["x"], "id", force=False, numeric=True)


def test_globs_stay_within_a_part_of_a_name() -> None:
    import re

    found = re.compile(glob_pattern("web*"))
    assert found.search("web1")
    assert found.search("web1.example.com")
    assert not found.search("my.web1")
    assert not re.search(glob_pattern("a?c"), "a.c")


def test_globs_have_classes_of_characters() -> None:
    import re

    found = re.compile(glob_pattern("[pq]*"))
    assert [name for name in ("p1", "q2.example.com", "r3") if found.search(name)] == [
        "p1", "q2.example.com",
    ]  # fmt: skip
    assert re.search(glob_pattern("web[0-9]"), "web7")
    assert not re.search(glob_pattern("web[!0-9]"), "web7")
    assert re.search(glob_pattern("a[^]b"), "a^b")
    assert name_filter(["[pq]*"], "name", force=False) == [
        "|",
        ["=~", "name", "^[pq][^.]*(\\..*)?$"],
    ]
    assert re.search(glob_pattern("a["), "a[")
