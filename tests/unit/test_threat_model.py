"""Every sentence of the threat model is shown by a test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MODEL = (PROJECT / "docs/threat-model.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", MODEL, re.MULTILINE))
POINTS = [
    " ".join(point.split()) for text in SECTIONS.values() for point in re.split(r"\n- ", text)[1:]
]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("point", POINTS, ids=lambda point: str(point[:50]))
def test_every_point_names_tests_that_exist(point: str) -> None:
    named = _TEST.findall(point)
    assert named
    for path, test in named:
        assert test.startswith("test_")
        assert test in functions_of(path), f"{path} has no {test}"


@pytest.mark.parametrize("who", SECTIONS)
def test_everybody_has_points(who: str) -> None:
    assert "\n- " in SECTIONS[who]


def test_every_test_that_is_named_belongs_to_a_point() -> None:
    assert len(_TEST.findall(MODEL)) == sum(len(_TEST.findall(point)) for point in POINTS)
