"""Whatever the input: a sentence on standard error, exit status 1, never a traceback."""

import copy
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator.htools.hail import run
from tests.diff.messages import KINDS, random_message

SEED = 11
STRANGE: tuple[Any, ...] = (
    None, True, -5, 0, 3.5, 1e30, 10**25, -(10**19), 2**63, "x", "", [], {}, [1], {"a": 1}, "drbd",
)  # fmt: skip


def hail(text: str, *words: str) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    status = run([*words, "-"], io.StringIO(text), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Invalid JSON"),
        ("{", "Malformed JSON"),
        ("[1]", "Unable to read JSObject"),
        ('{"request": NaN}', "invalid token in this context NaN"),
        ('{"a": 1}', "key 'request' not found, object contains only [\"a\"]"),
        ('{"request": 1}', "key 'request': Unable to read JSObject"),
        ('{"request": {}, "nodegroups": {"u": {}}}', "invalid data for group 'u': key 'name'"),
        ('{"request": {}, "nodegroups": {"u": []}}', "not an object"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 100_000 + "}", "a number nobody can read"),
    ],
)
def test_it_is_told_what_is_wrong(text: str, complaint: str) -> None:
    status, stdout, stderr = hail(text)
    assert (status, stdout) == (1, "")
    assert stderr.startswith("Error: ")
    assert complaint in stderr
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_traceback_whatever_is_broken(kind: str) -> None:
    rng = Random(f"{SEED}{kind}")
    for _ in range(25):
        message = random_message(rng, kind, nodes=4)
        _break(rng, message)
        text = json.dumps(message)
        if rng.random() < 0.1:
            text = text[: rng.randrange(len(text))]
        status, stdout, stderr = hail(text)
        assert status in {0, 1}
        assert bool(stdout) == (status == 0)
        assert "Traceback" not in stderr


def test_a_huge_exponent_takes_no_memory() -> None:
    message = random_message(Random(SEED), "allocate", nodes=3)
    text = json.dumps(message).replace('"free_memory": ', '"free_memory": 1e999999999, "x": ', 1)
    status, _, stderr = hail(text)
    assert status == 1
    assert "Unable to read Int" in stderr


def test_numbers_too_large_to_reckon_with() -> None:
    message = random_message(Random(SEED), "allocate", nodes=3)
    for node in message["nodes"].values():
        node |= {"offline": False, "vm_capable": True, "total_memory": 10**30}
    status, _, stderr = hail(json.dumps(message))
    assert status == 1
    assert "too large" in stderr


def test_mirrored_on_one_node_is_refused_by_an_answer() -> None:
    """Another exit status would have Ganeti believe that the allocator is broken."""
    message = random_message(Random(SEED), "allocate", nodes=3)
    message["request"] |= {"disk_template": "drbd", "required_nodes": 1}
    status, stdout, _ = hail(json.dumps(message))
    assert status == 0
    assert json.loads(stdout)["success"] is False
    assert "takes two nodes, not one" in stdout


def test_an_instance_that_is_named_twice_is_moved_once() -> None:
    message = random_message(Random(SEED), "node-evacuate", nodes=6)
    for name in message["instances"]:
        request = {"type": "node-evacuate", "evac_mode": "all", "instances": [name]}
        once = hail(json.dumps(message | {"request": request}))
        twice = hail(json.dumps(message | {"request": request | {"instances": [name, name]}}))
        assert once == twice


@pytest.mark.parametrize("arguments", [["request"], ["--help"]])
def test_output_that_cannot_be_written_is_told_in_a_sentence(
    arguments: list[str], tmp_path: Path
) -> None:
    message = random_message(Random(SEED), "allocate", nodes=3)
    (tmp_path / "request").write_text(json.dumps(message))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
            [sys.executable, "-c", "from coordinator.htools.hail import main; main()", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(Path.cwd())}, check=False,
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.endswith("Error: cannot write the output: No space left on device\n")


def test_wrong_options_are_refused() -> None:
    assert hail("{}", "--nonsense")[0] == 2
    assert hail("{}", "another-file")[2] == (
        "Error: Only one argument is accepted (the input file)\n"
    )


def test_a_file_that_is_not_there() -> None:
    stderr = io.StringIO()
    assert run(["/nonexistent"], io.StringIO(), io.StringIO(), stderr) == 1
    assert "No such file" in stderr.getvalue()


def _break(rng: Random, message: dict[str, Any]) -> None:
    """Remove something, or put something strange in its place."""
    holder: Any = message
    key: Any = rng.choice(list(holder))
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.8:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(rng.choice(STRANGE))
