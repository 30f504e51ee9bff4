"""Few nodes are reckoned with one by one, without NumPy: the same to the bit as by arrays."""

import io
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from coordinator.allocator.model import shift
from coordinator.allocator.model import state as states
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.figures import figures, figures_of_row
from coordinator.allocator.model.resources import asked, asked_arrays
from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.state import Scope, State
from coordinator.allocator.model.terms import Term
from coordinator.allocator.model.trials import as_primary, as_secondary
from coordinator.allocator.snapshot import Instance
from coordinator.htools import hail
from tests.diff import text_clusters
from tests.diff.messages import KINDS, random_message, random_words
from tests.support.seeds import examples
from tests.unit.allocator.clusters import Taste, random_demand, random_snapshot

SEEDS = range(examples(60))
HEAVY = {"dataclasses", "json", "msgspec", "numpy", "re", "typing"}
PROJECT = Path(__file__).parents[3]


def answer(text: str, words: list[str]) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    status = hail.run([*words, "-"], io.StringIO(text), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_same_with_arrays(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(examples(40)):
        rng = Random(f"{kind}{seed}")
        text, words = json.dumps(random_message(rng, kind)), [*random_words(rng), "-v"]
        with monkeypatch.context() as few:
            few.setattr(states, "FEW_WITH_NUMPY", 1000)
            one_by_one = answer(text, words)
        with monkeypatch.context() as many:
            many.setattr(states, "FEW", 0)
            many.setattr(states, "FEW_WITH_NUMPY", 0)
            assert answer(text, words) == one_by_one, f"seed {seed}"


def test_no_request_to_few_nodes_loads_what_takes_long() -> None:
    """All kinds that Ganeti asks, storage that is exclusive, and how many fit.

    A balancing looks at all moves at once.
    """
    texts = []
    for kind in KINDS:
        message = random_message(Random(f"{kind}3"), kind, nodes=20)
        texts.append(json.dumps(message))
        if kind == "allocate":
            capacity = message["request"] | {"type": "capacity", "limit": 3}
            texts.append(json.dumps(message | {"request": capacity}))
            for node in message["nodes"].values():
                node["ndparams"]["exclusive_storage"] = True
                node["total_spindles"] = node["free_spindles"] = 12
            for template, count in (("plain", 1), ("drbd", 2)):
                message["request"] |= {"disk_template": template, "required_nodes": count}
                texts.append(json.dumps(message))
    program = (
        "import io, sys\n"
        "class Blocker:\n"
        "    def find_spec(name, *_):\n"
        f"        assert name not in {HEAVY}, name\n"
        "sys.meta_path.insert(0, Blocker)\n"
        "from coordinator.htools import hail\n"
        "for text in sys.stdin:\n"
        "    assert hail.run(['-'], io.StringIO(text), sys.stdout, sys.stderr) == 0\n"
    )
    done = subprocess.run(  # noqa: TID251 - it has to start without what the tests have loaded
        [sys.executable, "-c", program], input="\n".join(texts), capture_output=True, text=True,
        cwd=PROJECT, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"success"') == len(texts)


def scopes(state: State, monkeypatch: pytest.MonkeyPatch) -> tuple[Scope, Scope]:
    """The whole cluster, to be scored one by one and with arrays."""
    everyone = range(state.model.size)
    with monkeypatch.context() as other:
        other.setattr(states, "FEW", 0)
        many = state.scope(everyone)
    few = state.scope(everyone)
    assert isinstance(few.standing, RowScore)
    assert isinstance(many.standing, Score) > isinstance(few.standing, Score)
    return few, many


@pytest.mark.parametrize("seed", SEEDS)
def test_the_score_as_it_stands_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    state = State(ClusterModel(random_snapshot(rng, Taste.random(rng))))
    few, many = scopes(state, monkeypatch)
    assert few.standing.value == many.standing.value or few.standing.value != few.standing.value
    parts = [[scope.standing.parts()[term] for term in Term] for scope in (few, many)]
    assert np.array_equal(parts[0], parts[1], equal_nan=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_places_are_ranked_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    model = ClusterModel(random_snapshot(rng, taste))
    state = State(model)
    for number in range(4):  # each on what the others leave
        demand, last_if_nan = random_demand(rng, taste, f"new{number}"), rng.random() < 0.5
        nodes = rng.sample(range(model.size), rng.randint(1, model.size))
        nodes.sort()
        found = []
        for scope in scopes(state, monkeypatch):
            trials = as_primary(state, scope, nodes, demand, force=True)
            ranked = [*trials.ranked(last_if_nan=last_if_nan)]
            copies = as_secondary(state, scope, nodes, demand)
            found.append((trials.codes, copies.codes, str(ranked)))
        assert found[0] == found[1]
        state.put_primary(demand, nodes[0], 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_is_changed_as_an_element_of_arrays(seed: int) -> None:
    rng = Random(seed)
    taste = Taste.random(rng)
    model = ClusterModel(random_snapshot(rng, taste))
    demand = random_demand(rng, taste, "new")
    for force in (False, True):
        check_changes(model, demand, force=force)


def check_changes(model: ClusterModel, demand: Instance, *, force: bool) -> None:
    nothing, everyone = np.zeros(model.size, dtype=np.int64), np.arange(model.size)
    arrays, row = asked_arrays(demand), asked(demand)
    codes, after = shift.add_primary(
        model.resources.at(everyone), arrays, clashes=nothing, location=nothing, force=force
    )
    copies, kept = shift.add_secondary(after, arrays, promised=nothing + 100, force=force)
    back = shift.change_secondary(
        shift.change_primary(kept, arrays, clashes=nothing, location=nothing, come=False),
        arrays, reserved=nothing + 7, come=False,
    )  # fmt: skip
    for node in range(model.size):
        code, one = shift.add_primary(model.rows[node], row, clashes=0, location=0, force=force)
        assert (code, one) == (codes[node], after.row(node))
        code, one = shift.add_secondary(one, row, promised=100, force=force)
        assert (code, one) == (copies[node], kept.row(node))
        assert np.array_equal(figures_of_row(one), figures(kept)[:, node], equal_nan=True)
        one = shift.change_primary(one, row, clashes=0, location=0, come=False)
        one = shift.change_secondary(one, row, reserved=7, come=False)
        assert one == back.row(node)


@pytest.mark.parametrize("tool", ["hinfo -p -vvv", "hcheck", "hcheck --no-simulation -vv"])
def test_how_few_nodes_stand_is_told_without_numpy(tool: str, tmp_path: Path) -> None:
    name, *words = tool.split()
    path = tmp_path / "cluster.data"
    path.write_text(
        text_clusters.random_text(Random(3), text_clusters.Taste(nodes=6, per_node=0)),
        encoding="utf-8",
    )
    program = (
        "import sys\n"
        "sys.modules['numpy'] = None  # which has it refused\n"
        f"from coordinator.htools.{name} import main\n"
        f"main({['-t', str(path), *words]})\n"
    )
    done = subprocess.run(  # noqa: TID251 - as above
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=PROJECT, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
