"""Reading column by column gives what reading value by value gives, and a small request little."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from common.model.template import DiskTemplate
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import Snapshot
from coordinator.iallocator import table
from coordinator.iallocator.cluster import read_cluster
from coordinator.iallocator.fields import Fields
from coordinator.iallocator.jsontext import parse
from tests.diff.messages import KINDS, random_message
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot
from tests.unit.allocator.hail import question


def read(text: str) -> Snapshot:
    return read_cluster(Fields.of(parse(text), ""), kvm_node_memory=4096)


@pytest.mark.parametrize("kind", KINDS)
def test_same_cluster(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        rng = Random(f"{kind}{seed}")
        text = json.dumps(random_message(rng, kind, nodes=5))
        in_bulk = read(text)
        with monkeypatch.context() as other:
            other.setattr(table, "_as_usual", lambda *_: None)
            one_by_one = read(text)
        assert in_bulk.groups == one_by_one.groups
        assert in_bulk.tags == one_by_one.tags
        assert [*in_bulk.instances] == [*one_by_one.instances]
        assert [*in_bulk.nodes] == [*one_by_one.nodes]


def test_a_repeated_key_is_left_to_the_careful_reader() -> None:
    """The first of two values counts, as with hail."""
    message = random_message(Random(1), "allocate", nodes=3)
    name, one = next((n, i) for n, i in message["instances"].items() if i["memory"] != 1)
    text = json.dumps(message)
    field = f'"memory": {one["memory"]}'
    start = text.index(json.dumps(name))
    assert field in text[start:]
    twice = text[:start] + text[start:].replace(field, f'{field}, "memory": 1', 1)
    found = {each.name: each.memory for each in read(twice).instances}
    assert found[name] == one["memory"]


HEAVY = {"numpy"}

PROGRAM = """
import sys
before = set(sys.modules)
from coordinator.htools.hail import run
status = run([sys.argv[1]], sys.stdin, sys.stdout, sys.stderr)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "Malformed JSON: Expecting property name"),
        ('{"a": "\x01"}', "Malformed JSON: Invalid control character"),
        ('{"a": 1} x', "Malformed JSON: Extra data"),
        ("[1,", "Malformed JSON: Expecting value"),
        ('{"a": ' * 100_000, "nested too deeply"),
    ],
)
def test_the_program_tells_what_is_wrong(text: str, complaint: str) -> None:
    """In a process of its own, where nobody else has imported what complaints need."""
    program = "from coordinator.htools.hail import main; main()"
    ran = subprocess.run(  # noqa: TID251 - there is no loop here to block
        [sys.executable, "-c", program, "-"],
        input=text,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("Error: Parsing input IAllocator message: ")
    assert complaint in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_small_request_imports_nothing_heavy(tmp_path: Path) -> None:
    """Python's own start is most of its time; each of these would double the rest."""
    taste = Taste(nodes=5, templates=(DiskTemplate.DRBD,), uniform=True, trouble=0, fill=0.1)
    snapshot = random_snapshot(Random(2), taste)
    request = Allocate(instance=random_demand(Random(2), taste, "new.x"))
    path = tmp_path / "request.json"
    path.write_text(json.dumps(question(snapshot, request)), encoding="utf-8")
    ran = subprocess.run(  # noqa: TID251 - there is no loop here to block
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answer, imported = ran.stdout.splitlines()
    assert json.loads(answer)["success"]
    assert HEAVY.isdisjoint(imported.split()), HEAVY & set(imported.split())
