"""hbal on a running cluster: it reads it over LUXI, and its moves are jobs."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import msgspec
import pytest

from common.errors import Conflict
from common.luxi.client import ConnectionLost
from common.model.template import DiskTemplate
from common.names import InstanceName, NodeName
from coordinator.htools import execute, hbal, hsqueeze, luxi_source
from coordinator.htools.program import run
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import create
from tests.support.clock import DAY_S, VirtualLoop
from tests.support.cluster import SimulatedCluster, simulated_cluster

WORDS = ("-L", "-X", "--ignore-soft-errors")


class Stage:
    """A cluster that runs whenever somebody asks it something, or waits.

    Attributes:
        calls: methods asked for, in order.
        on_call: done before each call.
        on_pause: done before each wait.
    """

    def __init__(self, runner: asyncio.Runner, cluster: SimulatedCluster) -> None:
        self.runner, self.cluster = runner, cluster
        self.calls: list[str] = []
        self.on_call: Callable[[str], None] = lambda _method: None
        self.on_pause: Callable[[], None] = lambda: None

    def call(self, method: str, *args: Any) -> Any:
        """Ask as a client does, so that only what JSON can say is passed on."""
        self.calls.append(method)
        self.on_call(method)
        told = json.loads(json.dumps(args))
        answer = self.runner.run(self.cluster.master.luxi(method, *told))
        return json.loads(msgspec.json.encode(answer))

    def pause(self, seconds: float) -> None:
        self.on_pause()
        self.runner.run(asyncio.sleep(seconds))

    def homes(self) -> dict[str, str]:
        config = self.cluster.config
        return {
            i.name: config.nodes[i.primary_node].name for i in config.instances.values()
        }  # fmt: skip

    def spread(self) -> list[int]:
        """How many instances the nodes have, fewest first."""
        homes = list(self.homes().values())
        return sorted(homes.count(name) for name in self.cluster.names)


class Caller:
    """In place of the client of a socket."""

    stage: Stage

    def __init__(self, _path: str) -> None:
        self.call = self.stage.call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        pass


@contextmanager
def playing(monkeypatch: pytest.MonkeyPatch, *instances: str, **how: Any) -> Iterator[Stage]:
    """A cluster of three nodes, with these instances on alpha."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(DAY_S)) as runner:
        context = simulated_cluster()
        stage = Stage(runner, runner.run(context.__aenter__()))
        try:
            for name in instances:
                runner.run(stage.cluster.run(create(name, "alpha", **how)))
            monkeypatch.setattr(Caller, "stage", stage, raising=False)
            monkeypatch.setattr(luxi_source, "Client", Caller)
            monkeypatch.setattr(execute, "Client", Caller)
            monkeypatch.setattr(execute, "_pause", stage.pause)
            yield stage
        finally:
            runner.run(context.__aexit__(None, None, None))


def run_hbal(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run("hbal", hbal.OPTIONS, hbal.balance, (*WORDS, *words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


SIX = tuple(f"web{number}" for number in range(1, 7))


def test_moves_are_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, *SIX) as stage:
        assert run_hbal("--priority=high", "--reason=tidy up") == 0
        assert stage.spread() == [2, 2, 2]
        jobs = stage.cluster.state.jobs.values()
        moves = [op for job in jobs for op in job.ops if "MIGRATE" in op.summary]
        assert {op.priority for op in moves} == {-10}
        assert all(op.input["reason"][0][:2] == ["hbal", "tidy up"] for op in moves)
        output = capsys.readouterr().out
        assert "Job set 1 of" in output
        assert ": success" in output
        assert run_hbal() == 0
        assert "Job set" not in capsys.readouterr().out


def test_what_does_not_run_is_failed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(monkeypatch, *SIX) as stage:
        for name in SIX:
            order = ShutDownInstance(instance_name=InstanceName(name))
            stage.runner.run(stage.cluster.run(order))
        assert run_hbal() == 0
        assert stage.spread() == [2, 2, 2]


def test_mirrored_instances_change_sides_and_get_other_secondary_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with playing(monkeypatch, *SIX[:3], second="beta", template=DiskTemplate.DRBD) as stage:
        assert run_hbal() == 0
        assert stage.spread() == [1, 1, 1]
        jobs = stage.cluster.state.jobs.values()
        done = {op.input["OP_ID"] for job in jobs for op in job.ops}
        assert {"OP_INSTANCE_MIGRATE", "OP_INSTANCE_REPLACE_DISKS"} <= done
        config = stage.cluster.config
        assert {len(config.nodes_of(each)) for each in config.instances.values()} == {2}
        assert not stage.cluster.pairs.lost


def test_a_node_with_copies_of_disks_is_not_turned_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, "web1", second="gamma", template=DiskTemplate.DRBD) as stage:
        web2 = create("web2", "beta", "alpha", template=DiskTemplate.DRBD)
        stage.runner.run(stage.cluster.run(web2))
        with pytest.raises(SystemExit):
            run("hsqueeze", hsqueeze.OPTIONS, hsqueeze.squeeze, ("-L", "-X"))
        assert capsys.readouterr().out == "'No action'\n"


def test_local_disks_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, *SIX, template=DiskTemplate.FILE) as stage:
        assert run_hbal() == 0
        assert stage.spread() == [0, 0, 6]
        assert "No solution found" in capsys.readouterr().out


def test_only_the_first_set_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(monkeypatch, *SIX) as stage:
        assert run_hbal("--first-job-group") == 0
        assert stage.calls.count("SubmitManyJobs") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_after_the_set_under_way(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, *SIX) as stage:
        before = signal.getsignal(number)
        stage.on_pause = _once(lambda: os.kill(os.getpid(), number))
        assert run_hbal() == 0
        assert stage.calls.count("SubmitManyJobs") == 1
        assert stage.spread() == [0, 1, 5]
        assert "Stopped before job set 2 of" in capsys.readouterr().err
        assert signal.getsignal(number) is before


def test_a_second_signal_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, *SIX) as stage:
        stage.on_pause = lambda: os.kill(os.getpid(), signal.SIGINT)
        assert run_hbal() == 1
        assert "Jobs go on by themselves: 7" in capsys.readouterr().err
        stage.on_pause = lambda: None
        stage.pause(60.0)
        assert stage.spread() == [0, 1, 5]


def test_a_failed_job_is_named_and_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with playing(monkeypatch, *SIX) as stage:

        def forbid(method: str) -> None:
            if method == "SubmitManyJobs":  # after hbal looked
                for name in ("beta", "gamma"):
                    order = ModifyNode(node_name=NodeName(name), drained=True, force=True)
                    stage.runner.run(stage.cluster.run(order))

        stage.on_call = _once_with(forbid, "SubmitManyJobs")
        assert run_hbal() == 1
        assert stage.spread() == [0, 0, 6]
        errors = capsys.readouterr().err
        assert "to migrate web" in errors
        assert "drained" in errors
        assert "left undone" in errors
        assert stage.calls.count("SubmitManyJobs") == 1


def test_what_the_cluster_cannot_do_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(monkeypatch, "web1", "web2") as stage:
        move = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1", "target_node": "beta"}
        trial = {"OP_ID": "OP_CLUSTER_QUERY"}
        with pytest.raises(Conflict) as refused:
            execute.run_jobs("", [[[move], [trial]], [[move]]], program="hsqueeze", reason="")
        told = refused.value.message
        assert "None of these jobs was accepted (" in told
        assert "cluster query): OP_CLUSTER_QUERY is Ganeti's" in told
        assert stage.homes() == {"web1": "alpha", "web2": "alpha"}
        assert stage.calls.count("SubmitManyJobs") == 1


def test_a_coordinator_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(monkeypatch, *SIX) as stage:
        asked = 0

        def restart(method: str) -> None:
            nonlocal asked
            asked += method == "QueryJobs"
            if method == "QueryJobs" and asked == 2:
                stage.runner.run(stage.cluster.crash_master())
                stage.runner.run(stage.cluster.start_master("alpha"))
                raise ConnectionLost("The coordinator hung up.")

        stage.on_call = restart
        assert run_hbal() == 0
        assert stage.spread() == [2, 2, 2]


def _once(do: Callable[[], None]) -> Callable[[], None]:
    left = [do]
    return lambda: left.pop()() if left else None


def _once_with(do: Callable[[str], None], method: str) -> Callable[[str], None]:
    left = [do]
    return lambda name: left.pop()(name) if left and name == method else None
