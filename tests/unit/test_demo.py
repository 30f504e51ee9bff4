"""``deploy/demo`` before it does anything: its help, and a cluster that somebody uses."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.trial import __main__ as demo
from deploy.trial.place import place
from deploy.trial.story import Story

PROJECT = Path(__file__).parents[2]


def test_help_is_shown_where_nothing_is_installed_yet(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    shutil.copy(PROJECT / "deploy/demo", tmp_path / "deploy/demo")
    for flag in ("--help", "-h"):
        done = subprocess.run(  # noqa: TID251 - no event loop here
            [tmp_path / "deploy/demo", flag], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("Usage: deploy/demo")
        assert done.stderr == ""
        for option in ("--keep", "--stop", "--again"):
            assert option in done.stdout


def test_a_kept_cluster_is_not_taken_down_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    kept = place().kept
    kept.parent.mkdir()
    kept.touch()
    cleared: list[Story] = []

    def clear(story: Story) -> None:
        cleared.append(story)

    monkeypatch.setattr(Story, "clear", clear)
    monkeypatch.setattr(Story, "prepare", lambda _: sys.exit("played"))
    for words in ([], ["--keep"]):
        monkeypatch.setattr(sys, "argv", ["demo", *words])
        with pytest.raises(SystemExit, match="has left a cluster up"):
            demo.main()
        assert cleared == []
    monkeypatch.setattr(sys, "argv", ["demo", "--again"])
    with pytest.raises(SystemExit, match="played"):
        demo.main()
    assert cleared
