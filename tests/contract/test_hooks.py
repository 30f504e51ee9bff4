"""What running hooks promises, kept by real scripts and by the fake."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

from common.noderpc.hooks import Ending, HookReport
from noded.hooks.directory import HookScripts
from noded.hooks.fake import FakeHooks
from noded.hooks.interface import HookRunner

START = "instance-start-pre.d"


class Rig(Protocol):
    """Hooks, and a way to put some there."""

    @property
    def hooks(self) -> HookRunner: ...
    def put(self, name: str, ending: Ending) -> None: ...
    def told(self) -> list[tuple[str, dict[str, str]]]:
        """Return the names of scripts that were run, and what each was told."""


class FakeRig:
    def __init__(self, _: Path) -> None:
        self.hooks = FakeHooks()

    def put(self, name: str, ending: Ending) -> None:
        self.hooks.scripts.setdefault(START, {})[name] = ending

    def told(self) -> list[tuple[str, dict[str, str]]]:
        return [(name, environment) for _, name, environment in self.hooks.runs]


class ScriptRig:
    def __init__(self, root: Path) -> None:
        self.root = root / "hooks"
        self._told = root / "told"
        self.hooks = HookScripts(self.root, root / "state")

    def put(self, name: str, ending: Ending) -> None:
        status = 1 if ending is Ending.FAILED else 0
        tell = f'{{ echo "{name}"; env -0 | tr "\\n\\0" " \\n"; echo; }} >> {self._told}'
        mode = 0o644 if ending is Ending.SKIPPED else 0o755
        self.write(name, f"{tell}; exit {status}", mode)

    def write(self, name: str, body: str, mode: int = 0o755) -> None:
        script = self.root / START / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        script.chmod(mode)

    def told(self) -> list[tuple[str, dict[str, str]]]:
        blocks = self._told.read_text(encoding="utf-8").split("\n\n") if self._told.exists() else []
        lines = [block.splitlines() for block in blocks if block.strip()]
        return [
            (name, dict(line.split("=", 1) for line in rest if "=" in line))
            for name, *rest in lines
        ]


@pytest.fixture(params=[FakeRig, ScriptRig])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    made: Rig = request.param(tmp_path)
    return made


@pytest.fixture
def scripts(tmp_path: Path) -> ScriptRig:
    return ScriptRig(tmp_path)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_only_directories_with_something_to_run_are_present(rig: Rig) -> None:
    assert run(rig.hooks.present((START, "global-pre.d"))) == ()
    rig.put("10-first", Ending.DONE)
    assert run(rig.hooks.present(("global-pre.d", START))) == (START,)


def test_scripts_run_in_the_order_of_their_names_whatever_becomes_of_one(rig: Rig) -> None:
    for name, ending in (
        ("20-bad", Ending.FAILED), ("30-good", Ending.DONE), ("10-good", Ending.DONE),
        ("15-left", Ending.SKIPPED),
    ):  # fmt: skip
        rig.put(name, ending)
    reports = run(rig.hooks.run(START, {"GANETI_OP_CODE": "OP_INSTANCE_STARTUP"}))
    assert [(r.script, r.ending) for r in reports] == [
        ("10-good", Ending.DONE), ("15-left", Ending.SKIPPED), ("20-bad", Ending.FAILED),
        ("30-good", Ending.DONE),
    ]  # fmt: skip
    assert [name for name, _ in rig.told()] == ["10-good", "20-bad", "30-good"]
    assert rig.told()[0][1]["GANETI_OP_CODE"] == "OP_INSTANCE_STARTUP"


def test_a_directory_that_is_not_there_has_nothing_to_run(rig: Rig) -> None:
    assert run(rig.hooks.run("node-add-pre.d", {})) == ()


def test_a_script_starts_in_the_root_with_nothing_of_the_daemons_environment(
    scripts: ScriptRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "shown")
    scripts.write("10-look", 'pwd; cat; echo "$PATH" "$#" "$GANETI_DATA_DIR" $SECRET_OF_THE_DAEMON')
    (report,) = run(scripts.hooks.run(START, {}))
    state = scripts.root.parent / "state"
    assert report.said == f"/\n/sbin:/bin:/usr/sbin:/usr/bin 0 {state}"


def test_what_a_script_said_is_told_with_its_failure(scripts: ScriptRig) -> None:
    scripts.write("10-say", "echo out; echo err >&2; exit 7")
    (report,) = run(scripts.hooks.run(START, {}))
    assert report.ending is Ending.FAILED
    assert report.said.endswith("ended with status 7. It said: out\nerr")


def test_of_a_script_that_says_much_the_end_is_kept(scripts: ScriptRig) -> None:
    scripts.write("10-talk", "yes word | head -n 2000000; echo last")
    (report,) = run(scripts.hooks.run(START, {}))
    assert report.ending is Ending.DONE
    assert report.said.endswith("word\nlast")
    assert len(report.said) <= 4000


def test_a_script_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    rig = ScriptRig(tmp_path)
    rig.hooks = HookScripts(rig.root, tmp_path, script_s=0.5)
    rig.write("10-hang", f"sleep 1000 & echo $! > {tmp_path}/child; wait")
    rig.put("20-next", Ending.DONE)
    first, second = run(rig.hooks.run(START, {}))
    assert first.ending is Ending.FAILED
    assert "did not end within 0.5 s" in first.said
    assert second.ending is Ending.DONE
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    assert not child.exists() or not child.read_bytes(), "it is still there, and no zombie"


def test_scripts_for_which_no_time_is_left_have_failed(tmp_path: Path) -> None:
    rig = ScriptRig(tmp_path)
    rig.hooks = HookScripts(rig.root, tmp_path, all_s=0.3)
    rig.write("10-hang", "sleep 1000")
    rig.put("20-next", Ending.DONE)
    _, second = run(rig.hooks.run(START, {}))
    assert second.said == "The scripts before it took all the time that there is."
    assert not rig.told()


@pytest.mark.parametrize("what", ["script", "directory"])
def test_what_others_can_change_is_not_run(scripts: ScriptRig, what: str) -> None:
    scripts.put("10-open", Ending.DONE)
    path = scripts.root / START / ("10-open" if what == "script" else "")
    path.chmod(0o777)
    (report,) = run(scripts.hooks.run(START, {}))
    assert report.ending is Ending.FAILED
    assert "has to be root's, and writable by nobody else" in report.said
    assert not scripts.told()


@pytest.mark.parametrize("name", ["10-old.dpkg-old", "10-edited~", ".hidden", "a script"])
def test_files_with_other_names_are_no_scripts(scripts: ScriptRig, name: str) -> None:
    scripts.put(name, Ending.DONE)
    assert run(scripts.hooks.present((START,))) == ()
    assert run(scripts.hooks.run(START, {})) == ()


def test_a_script_that_cannot_be_started_has_failed(scripts: ScriptRig) -> None:
    scripts.put("10-gone", Ending.DONE)
    script = scripts.root / START / "10-gone"
    script.write_text("#!/no/such/shell\n", encoding="utf-8")
    (report,) = run(scripts.hooks.run(START, {}))
    assert report == HookReport(script="10-gone", ending=Ending.FAILED, said=report.said)
    assert "Cannot start" in report.said
