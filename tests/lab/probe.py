"""What a node has, as JSON; run there, by its own Python and with nothing else.

Looked at are the things themselves, not what noded says of them.
"""

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

REPLICA = Path("/var/lib/gantry/state.sqlite")
GUESTS = Path("/run/gantry/instances")
COPIES = Path("/run/gantry/copies")
EXPORTS = Path("/var/lib/gantry/export")
FILES = Path("/srv/disks")
KINDS = ("node", "instance", "disk", "nic", "job")
_PROGRAM = re.compile(r"qemu-system.*/run/gantry/instances/([0-9a-f-]{36})")
_DEVICE = re.compile(r"^ *(\d+): cs:(\S+) ro:(\S+) ds:(\S+)", re.MULTILINE)
_PORT = re.compile(r"ipv4:\S+:(\d+)|address\s+ipv4 \S+:(\d+);")


def main() -> None:
    print(json.dumps(look()))  # noqa: T201 -- that is what it is for


def look() -> dict[str, object]:
    mirrors = Path("/proc/drbd")
    shown = _said("drbdsetup", "show") if mirrors.exists() else ""
    return {
        "volumes": sorted(_volumes()),
        "mirrors": [
            [int(minor), link, role, state]
            for minor, link, role, state in _DEVICE.findall(mirrors.read_text() if shown else "")
        ],
        "ports": sorted({int(one or other) for one, other in _PORT.findall(shown)}),
        "taps": sorted(path.name for path in Path("/sys/class/net").glob("gnt*")),
        "running": sorted(_running()),
        "homes": _names(GUESTS),
        "copies": _names(COPIES),
        "exports": _names(EXPORTS),
        "files": sorted(str(path) for path in FILES.rglob("*") if path.is_file()),
        "rows": _rows(),
    }


def _volumes() -> Iterator[str]:
    fields = "vg_name,lv_name"
    text = _said("lvs", "--reportformat", "json", "-o", fields, "--config", "report/time_format=0")
    for report in json.loads(text or '{"report": []}')["report"]:
        yield from (f"{each['vg_name']}/{each['lv_name']}" for each in report["lv"])


def _running() -> Iterator[str]:
    """Yield the guest of each QEMU."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if found := _PROGRAM.search(words):
            yield found[1]


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []


def _rows() -> dict[str, list[str]]:
    """Return what this node's replica has of each kind, whoever is master."""
    rows: dict[str, list[str]] = {kind: [] for kind in KINDS}
    if not REPLICA.exists():
        return rows
    db = sqlite3.connect(f"file:{REPLICA}?mode=ro", uri=True, timeout=10)
    for kind in KINDS:
        rows[kind] = [
            body for (body,) in db.execute("SELECT body FROM rows WHERE kind = ?", (kind,))
        ]
    db.close()
    return rows


def _said(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: TID251 -- there is no loop to block here
    return done.stdout


if __name__ == "__main__":
    main()
