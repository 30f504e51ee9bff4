"""The loop over a few pairs: the same answers, to the last letter, as the search with arrays."""

import io
import json
from dataclasses import replace
from random import Random

import pytest

from common.model.template import DiskTemplate
from coordinator.htools import hail
from coordinator.iallocator import quick
from coordinator.iallocator.jsontext import parse
from tests.diff.messages import random_message, random_words
from tests.unit.allocator.clusters import Taste, random_request, random_snapshot
from tests.unit.allocator.hail import question

OPTIONS = quick.QuickOptions(kvm_node_memory=4096)


def answer(text: str, words: list[str]) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    status = hail.run([*words, "-"], io.StringIO(text), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


def both(text: str, words: list[str], patch: pytest.MonkeyPatch) -> None:
    with patch.context() as other:
        other.setattr(quick, "quick_answer", lambda *_: None)
        with_arrays = answer(text, words)
    assert answer(text, words) == with_arrays


def simple(rng: Random, nodes: int) -> Taste:
    """A cluster for which the loop is meant."""
    return replace(
        Taste.random(rng), nodes=nodes, templates=(DiskTemplate.DRBD,), tags=False,
        locations=False, migration=False, forthcoming=0.0,
    )  # fmt: skip


def test_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    for seed in range(150):
        rng = Random(seed)
        taste = simple(rng, rng.choice((2, 3, 5, 8, 13, 25)))
        snapshot = random_snapshot(rng, taste)
        message = question(snapshot, random_request(rng, taste, snapshot))
        if rng.random() < 0.2:
            message["enabled_hypervisors"] = ["kvm"]
        text = json.dumps(message)
        taken += quick.quick_answer(parse(text), OPTIONS) is not None
        both(text, random_words(rng), monkeypatch)
    assert taken > 75, "it was hardly ever taken, so nothing was compared"


def test_same_answers_in_larger_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        rng = Random(f"large{seed}")
        taste = replace(simple(rng, rng.choice((60, 110, 160))), sound=seed % 2 == 0)
        snapshot = random_snapshot(rng, taste)
        text = json.dumps(question(snapshot, random_request(rng, taste, snapshot)))
        assert quick.quick_answer(parse(text), OPTIONS) is not None
        both(text, [], monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_unusual_is_left_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a key holds, the answer and the complaint are those of the careful reader."""
    rng = Random(seed)
    message = random_message(rng, "allocate", nodes=4)
    place: object = message
    while isinstance(place, dict | list) and place:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if rng.random() < 0.3 or not isinstance(place[key], dict | list):
            if isinstance(place, dict) and rng.random() < 0.3:
                del place[key]
            else:
                place[key] = rng.choice((None, True, -5, 0, 3.5, 2**63, "x", [], {}, "drbd"))
            break
        place = place[key]
    both(json.dumps(message), [], monkeypatch)
