"""Tell what the guests of a node say on their consoles; run there, by its own Python.

Prints a line for each start of a guest, “UUID start NUMBER WHERE”, and the newest number of each
that has counted on since the last look, “UUID count NUMBER”. WHERE is another one for each start,
and the same when it is told again.
"""

import re
import time
from pathlib import Path

GUESTS = Path("/run/gantry/instances")
BOOT = Path("/proc/sys/kernel/random/boot_id")
LOOK_EVERY_S = 0.1
_LINE = re.compile(rb"(going on from )?([0-9A-F]{8})\r?\n")


def main() -> None:
    boot = BOOT.read_text().strip()
    read: dict[str, int] = {}  # up to where, of each log
    while True:
        for path in GUESTS.glob("*/serial.log"):
            try:
                log, size = f"{boot}/{path.stat().st_ino}", path.stat().st_size
                begin = min(read.get(log, 0), size)  # less, when its beginning was cut away
                data = path.read_bytes()[begin:]
            except OSError:  # it has just been removed
                continue
            end = data.rfind(b"\n") + 1
            read[log] = begin + end
            tell(path.parent.name, log, begin, data[:end])
        time.sleep(LOOK_EVERY_S)


def tell(guest: str, log: str, begin: int, said: bytes) -> None:
    newest = ""
    for line in _LINE.finditer(said):
        number = int(line[2], 16)
        if not line[1]:
            newest = f"{guest} count {number}"
            continue
        if newest:
            print(newest)
            newest = ""
        print(f"{guest} start {number} {log}/{begin + line.start()}", flush=True)
    if newest:
        print(newest, flush=True)


if __name__ == "__main__":
    main()
