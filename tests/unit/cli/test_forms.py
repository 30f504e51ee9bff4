"""Forms of output: YAML for those who like it, colour for those who look."""

import io
import json

import pytest

from coordinator.cli.colour import paint, paint_finding, status_colour
from coordinator.cli.yaml import to_yaml
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_values_are_written_in_blocks() -> None:
    value = {
        "name": "web1.example.com", "up": True, "memory": 512, "load": 0.5, "none": None,
        "tags": ["a", "no", "1", "x: y"], "empty": [[], {}], "text": "two\nlines",
        "disks": [{"size": 64, "name": ""}, {"size": 1}], "deep": [["a", "b"], "c"],
    }  # fmt: skip
    assert to_yaml(value).splitlines() == [
        "name: web1.example.com", "up: true", "memory: 512", "load: 0.5", "none: null",
        "tags:", "  - a", '  - "no"', '  - "1"', '  - "x: y"', "empty:", "  - []", "  - {}",
        'text: "two\\nlines"', "disks:", "  - size: 64", '    name: ""', "  - size: 1",
        "deep:", "  - - a", "    - b", "  - c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["gnt-instance list", "gnt-node info alpha", "gnt-cluster info", "gnt-job info 2",
     "gnt-cluster version", "gnt-instance list-fields name"],
)  # fmt: skip
@pytest.mark.usefixtures("coordinator")
def test_whatever_is_told_as_json_is_told_as_yaml(run: Run, command: str) -> None:
    told = json.loads(run(f"{command} --json").out)
    assert run(f"{command} --yaml").out == to_yaml(told)
    assert run(f"{command} --yaml --json").code == 2


def test_colour_is_for_terminals_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("up", "32", Terminal()) == "\x1b[32mup\x1b[0m"
    assert paint("up", "32", io.StringIO()) == "up"
    assert paint("up", "", Terminal()) == "up"
    line = "Sun Nov 22 00:00:00 2026   - ENODEHV: ERROR: node beta: No."
    assert paint_finding(line, Terminal()) == line.replace("ERROR", "\x1b[31mERROR\x1b[0m")
    assert paint_finding("Sun * shut down", Terminal()) == "Sun * shut down"
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            assert paint("up", "32", Terminal()) == "up"


def test_a_status_that_alarms_is_red() -> None:
    assert status_colour("ERROR_down") == status_colour("error") == "31"
    assert status_colour("running") == "32"
    assert status_colour("whatever") == ""


@pytest.mark.usefixtures("coordinator")
def test_columns_keep_their_width_in_colour(
    run: Run, monkeypatch: pytest.MonkeyPatch, coordinator: ScriptedCoordinator
) -> None:
    plain = run("gnt-instance list -o name,status,pnode").out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    coloured = run("gnt-instance list -o name,status,pnode").out
    assert "\x1b[32mrunning" in coloured
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain
