"""Debian's hail and ours on the same message."""

import io
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator.htools.hail import run
from tests.unit.allocator.hail import HAIL


@dataclass(frozen=True)
class Outcome:
    """What a program said; ``info`` and ``errors`` are told to people, so not compared."""

    status: int
    success: bool | None
    result: Any
    info: str
    errors: str

    @property
    def essence(self) -> tuple[int, bool | None, Any]:
        return self.status, self.success, self.result


def theirs(text: str, folder: Path, *words: str) -> Outcome:
    """Run Debian's; ``folder`` is where its input goes."""
    path = folder / "request.json"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: TID251 - no event loop here
        [str(HAIL), *words, str(path)], check=False, capture_output=True, timeout=300
    )
    return _outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def ours(text: str, *words: str) -> Outcome:
    """Run ours in this process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    status = run([*words, "--strict-compat", "-"], io.StringIO(text), stdout, stderr)
    return _outcome(status, stdout.getvalue(), stderr.getvalue())


def _outcome(status: int, stdout: str, stderr: str) -> Outcome:
    if not stdout:
        return Outcome(status, None, None, "", stderr)
    answer = json.loads(stdout)
    return Outcome(status, answer["success"], answer["result"], answer["info"], stderr)
