"""The same answers as Debian's hail on random clusters: success, result, exit status.

Some of each kind of request run here; for thousands, say how many and from which seed:

    HAIL_CASES=2000 HAIL_SEED=5000 pytest tests/diff/test_hail.py
"""

import json
import os
from pathlib import Path
from random import Random

import pytest

from tests.diff.messages import KINDS, random_message, random_words
from tests.diff.programs import ours, theirs
from tests.unit.allocator.hail import needs_hail

pytestmark = needs_hail

CASES = int(os.environ.get("HAIL_CASES", "60"))
SEED = int(os.environ.get("HAIL_SEED", "0"))


@pytest.mark.parametrize("kind", KINDS)
def test_same_answers(kind: str, tmp_path: Path) -> None:
    for number in range(SEED, SEED + CASES):
        rng = Random(f"{kind}{number}")
        text, words = json.dumps(random_message(rng, kind)), random_words(rng)
        expected, found = theirs(text, tmp_path, *words), ours(text, *words)
        assert found.essence == expected.essence, f"HAIL_SEED={number}: {expected.info}; {found}"


@pytest.mark.parametrize(("kind", "nodes"), [("allocate", 60), ("node-evacuate", 40)])
def test_same_answers_on_larger_clusters(kind: str, nodes: int, tmp_path: Path) -> None:
    for number in range(SEED, SEED + max(2, CASES // 30)):
        rng = Random(f"{kind}{number}")
        text = json.dumps(random_message(rng, kind, nodes=nodes))
        expected = theirs(text, tmp_path, "--no-capacity-checks")
        found = ours(text, "--no-capacity-checks")
        assert found.essence == expected.essence, f"case {number}: {expected.info}; {found}"
