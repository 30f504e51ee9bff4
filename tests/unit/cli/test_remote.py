"""Commands that go straight to nodes: what they print, and how they end."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from common.model.node import Node
from common.noderpc.remote import MOST_BYTES, Ended, KeptFile
from coordinator.cli import remote
from tests.unit.cli.conftest import Run

RULE = "-" * 48
NOT_ALLOWED = NodeFailure("No commands of the master's are run on this node.")


def ended(status: int, output: str) -> Ended:
    return Ended(status=status, output=output)


class Nodes:
    """Stands for the nodes: what each answers, and what it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, Any]] = []  # the node, its address, the argument

    async def everywhere(
        self, nodes: Sequence[Node], master: Node, do: Callable[[Any], Awaitable[Any]]
    ) -> dict[str, Any]:
        assert master.name == "alpha"
        for node in nodes:
            await do(_Recorder(self, node))
        return {node.name: self.answers.get(node.name, ended(0, "")) for node in nodes}


class _Recorder:
    def __init__(self, nodes: Nodes, node: Node) -> None:
        self._nodes, self._node = nodes, node

    async def run(self, *, line: str) -> None:
        self._nodes.asked.append((self._node.name, self._node.primary_ip, line))

    async def put(self, *, file: KeptFile) -> None:
        self._nodes.asked.append((self._node.name, self._node.primary_ip, file))


@pytest.fixture
def nodes(coordinator: object, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    made = Nodes()
    monkeypatch.setattr(remote, "_everywhere", made.everywhere)
    return made


def test_output_is_shown_by_node_with_the_masters_last(run: Run, nodes: Nodes) -> None:
    nodes.answers = {
        "alpha": ended(0, "up 3 days"),
        "beta": ended(1, "one\ntwo"),
    }
    ran = run("gnt-cluster command uptime -p")
    assert ran.code == 1
    assert ran.out.splitlines()[:6] == [
        RULE, "node: beta", "one", "two", "return code = 1", RULE,
    ]  # fmt: skip
    assert ran.out.endswith(f"{RULE}\nnode: alpha\nup 3 days\nreturn code = 0\n")
    assert {line for _, _, line in nodes.asked} == {"uptime -p"}


@pytest.mark.parametrize("before", ["", "-n alpha ", "-M --node=beta "])
def test_words_of_the_command_reach_nodes_as_they_are(run: Run, nodes: Nodes, before: str) -> None:
    run(f"gnt-cluster command {before}tail -n -5 -M /var/log/syslog")
    assert {line for _, _, line in nodes.asked} == {"tail -n -5 -M /var/log/syslog"}


@pytest.mark.parametrize("before", ["", "-n alpha "])
@pytest.mark.parametrize("line", ["ls", "-x", "ls -- -x"])
def test_what_ends_options_is_no_word_of_the_command(
    run: Run, nodes: Nodes, before: str, line: str
) -> None:
    run(f"gnt-cluster command {before}-- {line}")
    assert {line for _, _, line in nodes.asked} == {line}
    assert run(f"gnt-cluster command {before}--").code == 2


def test_lines_begin_with_the_node_and_successes_are_left_out_on_request(
    run: Run, nodes: Nodes
) -> None:
    nodes.answers = {
        "alpha": ended(0, "fine"),
        "beta": ended(2, "one\ntwo"),
    }
    ran = run("gnt-cluster command -M --failure-only -n alpha -n beta ls /nowhere")
    assert ran.out == f"{RULE}\nbeta: one\nbeta: two\nreturn code = 2\n"


def test_a_node_that_does_not_allow_it_is_told_and_is_no_success(run: Run, nodes: Nodes) -> None:
    nodes.answers = {"beta": NOT_ALLOWED}
    ran = run("gnt-cluster command -n beta true")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "it was not run")
    (told,) = json.loads(run("gnt-cluster command --json -n beta true").out)
    assert told == {"node": "beta", "status": None, "output": "", "error": NOT_ALLOWED.message}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("command -n nosuch true", "nosuch"),
        ("command -g nosuch true", "nosuch"),
        ("command -n beta", "Say which command"),
        ("copyfile /no/such/file", "No such file"),
        ("copyfile /etc", "is no plain file"),
    ],
)
def test_what_cannot_be_meant_asks_no_node(run: Run, nodes: Nodes, words: str, told: str) -> None:
    ran = run(f"gnt-cluster {words}")
    assert ran.code
    assert told in ran.err
    assert nodes.asked == []


def test_a_file_goes_to_all_nodes_but_the_master(run: Run, nodes: Nodes, root: Path) -> None:
    file = root / "hosts"
    file.write_text("192.0.2.1 alpha\n")
    file.chmod(0o640)
    ran = run(f"gnt-cluster copyfile {file}")
    assert (ran.code, ran.out) == (0, f"Copied {file} to 1 of 1 node.\n")
    assert "alpha" not in {name for name, _, _ in nodes.asked}
    sent = nodes.asked[0][2]
    assert (sent.path, sent.data, sent.mode) == (str(file), b"192.0.2.1 alpha\n", 0o640)
    nodes.answers = {"beta": NodeFailure("It may not be put on this node.")}
    ran = run(f"gnt-cluster copyfile -n beta --use-replication-network {file}")
    assert (ran.code, ran.err) == (1, "beta: It may not be put on this node.\n")


def test_a_file_that_is_too_large_is_refused(run: Run, nodes: Nodes, root: Path) -> None:
    file = root / "large"
    file.write_bytes(bytes(MOST_BYTES + 1))
    ran = run(f"gnt-cluster copyfile {file}")
    assert ran.code
    assert "more than 2 MiB" in ran.err
    assert nodes.asked == []
