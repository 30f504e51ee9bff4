"""What running root's programs promises, kept by real programs and by the fake."""

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest

import noded.programs.directory as directory_module
from common.errors import NodeFailure
from common.names import NodeName
from common.noderpc.programs import OobCommand
from noded.programs.directory import ProgramDirectory
from noded.programs.fake import FakePrograms
from noded.programs.interface import ProgramRunner

BETA = NodeName("beta")


class Rig(Protocol):
    """Programs, and a way to put some there."""

    @property
    def programs(self) -> ProgramRunner: ...
    @property
    def switch(self) -> str:
        """Where the program is that switches power."""

    def answer(self, command: OobCommand, said: str | None) -> None: ...
    def allow(self, command: str, said: str) -> None: ...


class FakeRig:
    switch = "/etc/gantry/out-of-band/switch"

    def __init__(self, _: Path) -> None:
        self.programs = FakePrograms()

    def answer(self, command: OobCommand, said: str | None) -> None:
        self.programs.answers[command, BETA] = said

    def allow(self, command: str, said: str) -> None:
        self.programs.commands[command] = said


class RealRig:
    def __init__(self, root: Path) -> None:
        self.out_of_band, self.restricted = root / "oob", root / "restricted"
        self.programs = ProgramDirectory(self.out_of_band, self.restricted)
        self.switch = str(self.out_of_band / "switch")

    def answer(self, command: OobCommand, said: str | None) -> None:
        body = "echo it burns >&2; exit 1" if said is None else f"echo '{said}'"
        put(self.out_of_band / "switch", f'[ "$1 $2 $#" = "{command} beta 2" ] || exit 3\n{body}')

    def allow(self, command: str, said: str) -> None:
        put(self.restricted / command, f"[ $# = 0 ] || exit 3\necho '{said}'")


def put(path: Path, body: str, mode: int = 0o755) -> None:
    path.parent.mkdir(mode=0o755, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(mode)


@pytest.fixture(params=[FakeRig, RealRig])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    made: Rig = request.param(tmp_path)
    return made


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "REFUSED_S", 0.0)


def run(work: Coroutine[Any, Any, str]) -> str:
    return asyncio.run(work)


def test_a_program_is_told_what_to_do_with_whom_and_its_answer_is_returned(rig: Rig) -> None:
    rig.answer(OobCommand.POWER_STATUS, '{"powered": true}')
    said = run(rig.programs.out_of_band(rig.switch, OobCommand.POWER_STATUS, BETA, 10))
    assert said.strip() == '{"powered": true}'


def test_a_program_that_fails_says_so(rig: Rig) -> None:
    rig.answer(OobCommand.POWER_OFF, None)
    with pytest.raises(NodeFailure, match="status 1"):
        run(rig.programs.out_of_band(rig.switch, OobCommand.POWER_OFF, BETA, 10))


def test_whether_a_program_would_be_run_is_told_beforehand(tmp_path: Path) -> None:
    rig = RealRig(tmp_path)
    put(rig.out_of_band / "switch", "echo ran")
    assert run(rig.programs.problem(rig.switch)) == ""
    assert "Cannot run" in run(rig.programs.problem(f"{rig.out_of_band}/other"))
    assert "is not in" in run(rig.programs.problem("/bin/true"))


def test_a_command_is_run_by_its_name(rig: Rig) -> None:
    rig.allow("tell", "well")
    assert run(rig.programs.restricted("tell")).strip() == "well"


def test_a_command_that_is_not_there_is_refused_in_one_sentence(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="This node does not run “tell”; its log says why"):
        run(rig.programs.restricted("tell"))


def test_only_what_lies_in_roots_directory_is_run_as_root(tmp_path: Path) -> None:
    rig = RealRig(tmp_path)
    elsewhere = tmp_path / "switch"
    put(elsewhere, "echo ran")
    put(rig.out_of_band / "switch", "echo ran")
    (rig.out_of_band / "below").mkdir()
    put(rig.out_of_band / "below" / "switch", "echo ran")
    for path in (
        elsewhere, rig.out_of_band / ".." / "switch", rig.out_of_band / "below" / "switch",
        rig.out_of_band, Path("/bin/true"), rig.out_of_band / "none",
    ):  # fmt: skip
        with pytest.raises(NodeFailure):
            run(rig.programs.out_of_band(str(path), OobCommand.HEALTH, BETA, 10))


def test_what_others_could_have_changed_is_not_run(tmp_path: Path) -> None:
    rig = RealRig(tmp_path)

    def out_of_band() -> str:
        return run(rig.programs.out_of_band(rig.switch, OobCommand.HEALTH, BETA, 9))

    def restricted() -> str:
        return run(rig.programs.restricted("switch"))

    for directory, ask in ((rig.out_of_band, out_of_band), (rig.restricted, restricted)):
        program = directory / "switch"
        for mode in (0o777, 0o775, 0o644):
            put(program, "echo ran", mode)
            with pytest.raises(NodeFailure):
                ask()
        put(program, "echo ran")
        directory.chmod(0o777)
        with pytest.raises(NodeFailure):
            ask()
        directory.chmod(0o755)
        assert ask().strip() == "ran"
        target = tmp_path / f"real-{directory.name}" / "switch"
        put(target, "echo ran")
        program.unlink()
        program.symlink_to(target)
        assert ask().strip() == "ran"
        directory.chmod(0o777)  # where somebody could put another link
        with pytest.raises(NodeFailure):
            ask()
        directory.chmod(0o755)
        target.parent.chmod(0o777)  # where somebody could put another one
        with pytest.raises(NodeFailure):
            ask()


def test_a_program_that_does_not_end_is_killed_in_time(tmp_path: Path) -> None:
    rig = RealRig(tmp_path)
    asleep = str(10_000_000 + os.getpid())  # seconds, by which it is found among all processes
    put(rig.out_of_band / "switch", f"exec sleep {asleep}")
    with pytest.raises(NodeFailure, match=r"did not end within 0\.3 s and was killed"):
        run(rig.programs.out_of_band(rig.switch, OobCommand.POWER_CYCLE, BETA, 0.3))
    assert not [line for line in _command_lines() if asleep.encode() in line]


def _command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            yield (process / "cmdline").read_bytes()
