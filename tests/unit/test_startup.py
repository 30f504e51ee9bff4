"""A list command spends its time on starting up, so what it imports is a promise.

The program runs for real, against a socket that answers like a coordinator without instances.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

# Each costs more than all the rest of a list command; see deploy/bench imports.
HEAVY = {"aiohttp", "asyncio", "cryptography", "immutables", "msgspec", "numpy", "re2", "uvloop"}

PROGRAM = """
import sys
from coordinator.cli.main import gnt_instance
try:
    gnt_instance()
finally:
    print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def answer(listener: socket.socket) -> None:
    """Serve one client: any query finds nothing."""
    connection, _ = listener.accept()
    with connection:
        while request := connection.recv(2**16):
            wanted = json.loads(request.rstrip(b"\x03"))["args"][1]
            fields = [{"name": n, "title": n, "kind": "text", "doc": n} for n in wanted]
            told = {"success": True, "result": {"fields": fields, "data": []}}
            connection.sendall(json.dumps(told).encode() + b"\x03")


@pytest.mark.parametrize("options", [[], ["--no-headers", "-o", "name,status"], ["--json"]])
def test_list_imports_nothing_heavy(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "run/gantry/coordinator").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "run/gantry/coordinator/luxi.sock"))
        listener.listen()
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        ran = subprocess.run(  # noqa: TID251  # there is no loop here to block
            [sys.executable, "-c", PROGRAM, "list", *options],
            env=os.environ | {"GANTRY_ROOT": str(tmp_path)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    *_, imported = ran.stderr.splitlines()
    assert imported.startswith("imported: ")
    assert HEAVY.isdisjoint(imported.split()), HEAVY & set(imported.split())
