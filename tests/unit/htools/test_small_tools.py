"""hcheck, hroller, hsqueeze and hscan: what goes wrong is told in a sentence."""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from common.record import replace
from coordinator.htools import hail, hcheck, hinfo, hroller, hscan, hsqueeze
from coordinator.htools.options import Option, Parsed
from coordinator.htools.program import run
from coordinator.htools.text import format_cluster, parse_cluster
from tests.diff.luxi_server import Answering, serving
from tests.diff.messages import random_message

_Tool = tuple[str, Sequence[Option], Callable[[Parsed], int]]
HCHECK: _Tool = ("hcheck", hcheck.OPTIONS, hcheck.check)
HROLLER: _Tool = ("hroller", hroller.OPTIONS, hroller.roll)
HSQUEEZE: _Tool = ("hsqueeze", hsqueeze.OPTIONS, hsqueeze.squeeze)
HINFO: _Tool = ("hinfo", hinfo.OPTIONS, hinfo.inform)
HSCAN: _Tool = ("hscan", hscan.OPTIONS, hscan.scan)
READERS = (HCHECK, HROLLER, HSQUEEZE)

CLUSTER = """\
default|u1|preferred||
other|u2|preferred||

a.x|4096|0|3072|10240|9216|8|M|u1
b.x|4096|0|4096|10240|9216|8|N|u1
c.x|4096|0|4096|10240|9216|8|N|u2|1|htools:standby:auto

web.x|1024|1024|1|running|Y|a.x|b.x|drbd|

"""
SPLIT = CLUSTER.replace("a.x|b.x|drbd", "a.x|c.x|drbd")


def given(tool: _Tool, *words: str) -> tuple[int, str, str]:
    """Exit status, output and errors."""
    output, errors = io.StringIO(), io.StringIO()
    name, options, work = tool
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        run(name, options, work, words)
    assert isinstance(ended.value.code, int)
    return ended.value.code, output.getvalue(), errors.getvalue()


@pytest.fixture
def data(tmp_path: Path) -> Callable[[str], str]:
    def save(text: str) -> str:
        path = tmp_path / "cluster.data"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return save


@pytest.mark.parametrize("tool", READERS, ids=lambda tool: tool[0])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\n\n",
        CLUSTER[:60],
        CLUSTER.replace("4096", "much"),
        CLUSTER.replace("4096", "NaN"),
        CLUSTER.replace("4096", "99999999999999999999"),
        CLUSTER.replace("drbd", "drdb"),
        CLUSTER.replace("|Y|a.x|", "|Y|z.x|"),
        CLUSTER.replace("a.x|b.x|drbd", "a.x|a.x|drbd"),
        CLUSTER + "\nnowhere|128,1,1024,1,1,1||drbd|4.0|32.0\n",
        CLUSTER + "\n|128,1,1024,1,1||drbd|4.0|32.0\n",
    ],
)
def test_bad_input_is_told_in_a_sentence(
    tool: _Tool, text: str, data: Callable[[str], str]
) -> None:
    status, output, errors = given(tool, "-t", data(text))
    assert (status, output) == (1, "")
    assert errors.startswith("Error: failed to load data, aborting: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("tool", READERS, ids=lambda tool: tool[0])
def test_bad_command_lines(tool: _Tool, tmp_path: Path, data: Callable[[str], str]) -> None:
    path = data(CLUSTER)
    assert given(tool)[0] == 1
    assert given(tool, "-t", str(tmp_path / "none"))[0] == 1
    assert given(tool, "-t", str(tmp_path))[0] == 1
    assert given(tool, "-t", path, "superfluous")[0] == 1
    assert given(tool, "-t", path, "--no-such-option")[0] == 2
    assert given(tool, "-t", path, "-L")[0] == 1
    status, _, errors = given(tool, "-L/nowhere")
    assert status == 1
    assert errors.count("\n") == 1


@pytest.mark.parametrize("factor", ["much", "nan", "inf", "1e999"])
def test_factors_are_numbers(factor: str, data: Callable[[str], str]) -> None:
    for option in ("--minimal-resources", "--target-resources"):
        status, output, errors = given(HSQUEEZE, "-t", data(CLUSTER), option, factor)
        assert (status, output) == (1, "")
        assert factor in errors


def test_a_mirror_in_another_group_is_a_problem(data: Callable[[str], str]) -> None:
    """Debian's hcheck ends with an internal error here."""
    status, output, _ = given(HCHECK, "-t", data(SPLIT), "--machine-readable")
    assert status == 1
    assert "HCHECK_INIT_GROUP_0_GN1_FAIL=1\n" in output
    assert output.endswith("HCHECK_OK=1\n")
    assert given(HCHECK, "-t", data(CLUSTER))[0] == 0


def test_a_mirror_in_another_group_is_a_problem_for_a_node_that_is_alone(
    data: Callable[[str], str],
) -> None:
    alone = SPLIT.replace("b.x|4096|0|4096|10240|9216|8|N|u1\n", "")
    status, output, _ = given(HCHECK, "-t", data(alone), "--machine-readable")
    assert status == 1
    assert "HCHECK_INIT_GROUP_0_GN1_FAIL=1\n" in output


def test_a_master_that_is_offline_is_saved_as_offline() -> None:
    cluster = parse_cluster(CLUSTER)
    master = replace(cluster.nodes[0], offline=True)
    saved = format_cluster(replace(cluster, nodes=(master, *cluster.nodes[1:])))
    assert parse_cluster(saved).nodes[0].offline


@pytest.mark.parametrize("tool", READERS, ids=lambda tool: tool[0])
def test_numbers_too_large_to_reckon_with_are_told_in_a_sentence(
    tool: _Tool, tmp_path: Path
) -> None:
    message = random_message(Random(1), "node-evacuate", nodes=3)
    for node in message["nodes"].values():
        node["total_memory"] = 1e308
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message))
    if any(option.name == "ialloc-src" for option in tool[1]):
        status, _, errors = given(tool, "-I", str(path))
        assert status == 1
        assert errors == "Error: the cluster has a number or a size too large to reckon with.\n"


EVIL = "\x1b\x07\x9b\u202e"


@pytest.mark.parametrize(("tool", "words"), [(HINFO, ["-p"]), (HROLLER, [])])
def test_names_in_a_file_do_not_reach_the_terminal_as_they_came(
    tool: _Tool, words: Sequence[str], data: Callable[[str], str]
) -> None:
    named = CLUSTER.replace("a.x", f"{EVIL}a.x")
    status, output, errors = given(tool, "-t", data(named), *words)
    assert status == 0
    assert set(EVIL).isdisjoint(output + errors)
    assert "\\u001b\\u0007\\u009b\\u202ea" in output + errors


def test_what_a_request_to_hail_names_does_not_reach_the_terminal_as_it_came(
    tmp_path: Path,
) -> None:
    message = random_message(Random(1), "node-evacuate", nodes=3)
    text = json.dumps(message, ensure_ascii=False)
    for node in message["nodes"]:
        text = text.replace(node, json.dumps(f"{EVIL}{node}")[1:-1])
    path = tmp_path / "request.json"
    path.write_text(text)
    output, errors = io.StringIO(), io.StringIO()
    words = ["-v", "-v", "-p", str(path)]
    assert hail.run(words, io.StringIO(), output, errors) == 0, errors.getvalue()
    assert set(EVIL).isdisjoint(output.getvalue() + errors.getvalue())
    assert json.loads(output.getvalue()).keys() == {"success", "info", "result"}
    assert "\\u001b\\u0007\\u009b\\u202e" in errors.getvalue()


def test_hail_shows_the_request_to_whoever_asks_twice(tmp_path: Path) -> None:
    message = random_message(Random(1), "node-evacuate", nodes=3)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message))
    said = {}
    for words in (["-v"], ["-v", "-v"]):
        output, errors = io.StringIO(), io.StringIO()
        assert hail.run([*words, str(path)], io.StringIO(), output, errors) == 0
        said[len(words)] = [
            line for line in errors.getvalue().splitlines() if line.startswith("Received request")
        ]
    assert not said[1]
    (line,) = said[2]
    assert json.loads(line.removeprefix("Received request: ")) == message["request"]


def test_output_that_cannot_be_written_is_told_in_a_sentence(data: Callable[[str], str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
            [sys.executable, "-c", "from coordinator.htools.hcheck import main; main()",
             "-t", data(CLUSTER)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Error: cannot write the output: No space left on device\n"


def test_a_mirror_that_is_missing_is_a_problem(data: Callable[[str], str]) -> None:
    path = data(CLUSTER.replace("a.x|b.x|drbd", "a.x||drbd"))
    assert given(HCHECK, "-t", path)[0] == 1
    assert given(HROLLER, "-t", path)[:2] == (0, "'Node Reboot Groups'\nb.x,c.x,a.x\n")
    status, _, errors = given(HROLLER, "-t", path, "--full-evacuation")
    assert (status, errors) == (1, "Error: Failed to migrate instances off nodes\n")


def test_without_a_master_nothing_is_rolled_unless_forced(data: Callable[[str], str]) -> None:
    path = data(CLUSTER.replace("|M|", "|N|"))
    assert given(HROLLER, "-t", path)[0] == 1
    assert given(HROLLER, "-t", path, "--force")[0] == 0
    assert given(HROLLER, "-t", path, "--force", "-G", "none")[0] == 1
    assert given(HROLLER, "-t", path, "--force", "--node-tags=none")[0] == 1


def test_files_that_cannot_be_written(tmp_path: Path, data: Callable[[str], str]) -> None:
    path, nowhere = data(CLUSTER), str(tmp_path / "none" / "file")
    for tool in (HROLLER, HSQUEEZE):
        status, _, errors = given(tool, "-t", path, "-S", nowhere)
        assert status == 1
        assert nowhere in errors
    status, _, errors = given(HSQUEEZE, "-t", path, f"-C{nowhere}")
    assert status == 1
    assert nowhere in errors


def test_a_script_of_commands(tmp_path: Path, data: Callable[[str], str]) -> None:
    script = tmp_path / "script"
    status, output, _ = given(HSQUEEZE, "-t", data(CLUSTER), f"-C{script}")
    assert status == 0
    assert output.endswith(f"The commands have been written to file '{script}'\n")
    text = script.read_text()
    assert text.startswith("#!/bin/sh\n# Moves that hsqueeze proposes.")


def test_jobs_need_a_coordinator(data: Callable[[str], str]) -> None:
    shared = CLUSTER.replace("a.x|b.x|drbd", "b.x||rbd")
    status, output, errors = given(HSQUEEZE, "-t", data(shared), "-X")
    assert (status, output) == (1, "'Nodes to offline'\nb.x\nc.x\n")
    assert errors.endswith("Error: hsqueeze: Execution of commands possible only on LUXI\n")


def test_nodes_are_tagged_and_turned_off_by_jobs(tmp_path: Path) -> None:
    cluster = parse_cluster(CLUSTER.replace("a.x|b.x|drbd", "b.x||rbd").replace("|u2|", "|u1|"))
    answering = Answering(cluster)
    with serving(answering, tmp_path / "socket") as socket:
        status, output, _ = given(HSQUEEZE, f"-L{socket}", "-X")
    assert status == 0
    assert output.startswith("'Nodes to offline'\nb.x\nc.x\n")
    ids = [[job[-1]["OP_ID"] for job in jobs] for jobs in answering.submitted]
    assert ids == [
        ["OP_INSTANCE_MIGRATE"], ["OP_TAGS_SET"], ["OP_TAGS_SET"], ["OP_OOB_COMMAND"]
    ]  # fmt: skip
    ((power,),) = answering.submitted[-1:]
    assert [opcode.get("node_name") for opcode in power] == ["b.x", "c.x", None]
    assert power[-1]["node_names"] == ["b.x", "c.x"]


def test_a_scan_saves_what_is_reported(tmp_path: Path) -> None:
    with serving(Answering(parse_cluster(CLUSTER), "kvm"), tmp_path / "socket") as socket:
        status, output, _ = given(HSCAN, f"-L{socket}", "-d", str(tmp_path), "--no-headers")
    assert status == 0
    assert output.startswith("LOCAL     3     1     0     0  12288  11264     30     27 ")
    assert "a.x|4096|0|3072|" in (tmp_path / "LOCAL.data").read_text()


def test_a_scan_goes_on_after_a_failure(tmp_path: Path) -> None:
    status, output, _ = given(HSCAN, "-d", str(tmp_path), "http://127.0.0.1:1", "127.0.0.1:1")
    assert status == 2
    assert output.count("failed to load data. Details:") == 2
    assert not list(tmp_path.glob("*.data"))


def test_hail_places_by_the_load_that_agents_measure(tmp_path: Path) -> None:
    message = random_message(Random(5), "allocate", nodes=4)
    request, data = tmp_path / "request.json", tmp_path / "data.json"
    request.write_text(json.dumps(message))

    def chosen(*words: str) -> list[str]:
        output, errors = io.StringIO(), io.StringIO()
        assert hail.run([*words, str(request)], io.StringIO(), output, errors) == 0
        nodes: list[str] = json.loads(output.getvalue())["result"]
        return nodes

    (busy, *_) = chosen()
    loads = {name: 99.0 if name == busy else 0.5 for name in message["nodes"]}
    reports = [
        {"node": name, "reports": [{"name": "cpu-avg-load", "data": {"cpu_total": load}}]}
        for name, load in loads.items()
    ]
    data.write_text(json.dumps(reports))
    assert busy not in chosen(f"--mond-data={data}")
    assert busy in chosen(f"--mond-data={data}", "--ignore-dynu")
