"""What hbal makes of the monitoring agents' answers: the loads that Debian's makes of them."""

import contextlib
import http.server
import io
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.htools import hbal
from coordinator.htools.agents import ask_agents
from coordinator.htools.program import run
from tests.diff.both import find, needs, saved

TEXT = """g|uuid-g|preferred||

localhost|16384|512|15000|300000|290000|8|M|uuid-g|1||N|0|1|1.0
127.0.0.1|16384|512|15872|300000|300000|8|N|uuid-g|1||N|0|1|1.0

i.x|500|5000|1|running|Y|localhost||rbd||1|-|N
j.x|372|5000|2|running|Y|localhost||rbd||1|-|N

"""
NODES = ("localhost", "127.0.0.1")
CPU = {"cpus": [0.5, 0.25], "cpu_number": 2, "cpu_total": 0.75}


def report(name: str, data: Any) -> dict[str, Any]:
    return {
        "name": name, "version": "B", "format_version": 1, "timestamp": 1, "category": None,
        "kind": 0, "data": data,
    }  # fmt: skip


def answers(cpu: Any, *xen: Any) -> list[dict[str, Any]]:
    """Both nodes' reports; each node tells its own of ``xen``."""
    return [
        {
            "node": node,
            "reports": [report("cpu-avg-load", cpu), *(report("xen-cpu-avg-load", x) for x in own)],
        }
        for node, own in zip(NODES, xen or ((), ()), strict=True)
    ]


DATA = {
    "all": answers(CPU, [{"i.x": 0.3}], [{"j.x": 0.1}]),
    "no Xen": answers(CPU),
    "an instance is missing": answers(CPU, [{"i.x": 0.3}], [{}]),
    "a node is missing": answers(CPU, [{"i.x": 0.3, "j.x": 1}], [{}])[:1],
    "no number": answers({**CPU, "cpu_total": "much"}),
    "none": [],
    "no list": {},
    "no reports": [{"node": "localhost"}],
    "no objects": [1],
}


def told(out: str, err: str, code: int) -> tuple[list[str], int, bool]:
    """Loads of instances and nodes, the exit status, whether data was said to be ignored."""
    lines = (line for line in err.splitlines() if line.startswith((" R ", "   l", "   1")))
    loads = [line.split()[-4:] for line in lines]
    return [" ".join(each) for each in loads], code, "will be ignored" in err


@needs("hbal")
@pytest.mark.parametrize("what", DATA)
@pytest.mark.parametrize(
    "switches",
    [
        (), ("--mond=yes",), ("--mond=yes", "--mond-xen"), ("--mond=no",),
        ("--mond=yes", "--exit-on-missing-mond-data"), ("--mond", "--ignore-dynu"),
        ("--mond=yes", "--mond-xen", "--exit-on-missing-mond-data"), ("--mond", "-Udynu"),
    ],
)  # fmt: skip
def test_same_loads(
    what: str, switches: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "cluster", TEXT)
    saved(tmp_path / "data", json.dumps(DATA[what]))
    saved(tmp_path / "dynu", "i.x 0.5 0.6 0.7 0.8\nj.x 2 3 4 5\n")
    words = ["-t", "cluster", "--print-instances", "-p", "-l", "0", "--mond-data=data", *switches]
    program = find("hbal")
    assert program is not None
    done = subprocess.run(  # noqa: TID251 - the other program, and nothing else runs meanwhile
        [program, *words], capture_output=True, text=True, timeout=60, check=False
    )
    if "--ignore-dynu" in switches and what.startswith("no ") and what != "no Xen":
        assert told(*ours(words))[1] == 0  # what is not used is not read
        return
    assert told(*ours(words)) == told(done.stdout, done.stderr, done.returncode)


def ours(words: list[str]) -> tuple[str, str, int]:
    out, err = io.StringIO(), io.StringIO()
    silence = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with silence[0], silence[1], pytest.raises(SystemExit) as ended:
        run("hbal", hbal.OPTIONS, hbal.balance, words)
    assert isinstance(ended.value.code, int)
    return out.getvalue(), err.getvalue(), ended.value.code


@contextmanager
def agent(reports: dict[str, Any]) -> Iterator[int]:
    """An agent on this machine that knows these paths; yields its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path in reports
            body = json.dumps(reports.get(self.path)).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


def test_agents_are_asked_for_one_collector() -> None:
    load = report("cpu-avg-load", CPU)
    with agent({"/1/report/default/cpu-avg-load": load}) as port:
        text, silent = ask_agents(["127.0.0.1"], port=port)
        assert json.loads(text) == [{"node": "127.0.0.1", "reports": [load]}]
        assert silent == ()
        assert ask_agents(["127.0.0.1"], "xen-cpu-avg-load", port=port) == ("[]", ("127.0.0.1",))


@pytest.mark.parametrize("answer", [[], "text", None, 1])
def test_an_agent_that_answers_something_else_is_silent(answer: Any) -> None:
    with agent({"/1/report/default/cpu-avg-load": answer}) as port:
        assert ask_agents(["127.0.0.1"], port=port)[1] == ("127.0.0.1",)


def test_an_agent_that_is_away_is_silent() -> None:
    assert ask_agents(["127.0.0.1"], port=1) == ("[]", ("127.0.0.1",))
