"""Completion: what bash offers is what the commands take; zsh and fish read their files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from coordinator.cli.commands import AREAS
from deploy.completion.__main__ import scripts
from deploy.completion.table import programs

NAMES = {"gnt-instance": "web1\\nweb2", "gnt-node": "alpha\\nbeta", "gnt-job": "41\\n42"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for name, text in scripts().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    programs_there = folder / "bin"
    programs_there.mkdir()
    for program, names in NAMES.items():
        path = programs_there / program
        path.write_text(f'#!/bin/sh\n[ "$1" = list ] && printf "{names}\\n"\n')
        path.chmod(0o755)
    return folder


def complete(folder: Path, line: str) -> list[str]:
    """Return what bash offers at the end of a line."""
    words = line.split(" ")
    script = folder / "share/bash-completion/completions" / words[0]
    asked = (
        f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
        f"COMP_CWORD={len(words) - 1}; _gantry; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(  # noqa: TID251 - no event loop here
        ["bash", "-c", asked], env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gnt-instance st", ["startup", "start", "stop"]),
        ("gantry inst", ["instance"]),
        ("gantry instance sh", ["shutdown", "show"]),
        ("gantry join", ["join-token"]),
        ("gnt-instance startup ", ["web1", "web2"]),
        ("gnt-instance startup web1 web", ["web1", "web2"]),
        ("gantry instance migrate w", ["web1", "web2"]),
        ("gnt-instance migrate -n ", ["alpha", "beta"]),
        ("gnt-instance startup --primary b", ["beta"]),
        ("gnt-node modify --off", ["--offline"]),
        ("gnt-node modify --offline ", ["yes", "no"]),
        ("gnt-node evacuate ", ["alpha", "beta"]),
        ("gnt-job watch 4", ["41", "42"]),
        ("gnt-instance add -t d", ["diskless", "drbd"]),
        ("gnt-cluster queue ", ["drain", "undrain", "info"]),
        ("gnt-instance reboot -t ", ["soft", "hard", "full"]),
    ],
)
def test_bash_offers_what_can_follow(written: Path, line: str, offered: list[str]) -> None:
    assert sorted(complete(written, line)) == sorted(offered)


def test_every_option_of_every_command_is_offered(written: Path) -> None:
    for program, lines in programs().items():
        for name, line in lines.items():
            flags = [flag for option in line.options for flag in option.flags]
            if name in ("add", "verify", "join-token"):  # a process each
                assert complete(written, f"{program} {name} -") == flags
            for shell in (
                "zsh/site-functions/_gantry",
                f"fish/vendor_completions.d/{program}.fish",
            ):
                text = (written / "share" / shell).read_text()
                assert all(flag.lstrip("-") in text for flag in flags), (shell, name)


def test_every_program_has_its_file(written: Path) -> None:
    for program in (*AREAS, "gantry"):
        assert (written / "share/bash-completion/completions" / program).is_file()
        assert (written / "share/fish/vendor_completions.d" / f"{program}.fish").is_file()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(written: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} IS NOT INSTALLED: its completion was not read")
    for path in (written / "share" / shell).rglob("*"):
        if path.is_file():
            subprocess.run([shell, "-n", path], check=True, timeout=30)  # noqa: TID251 - no loop
