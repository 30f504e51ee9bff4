"""What importing costs, in a fresh process each: the budget of every command."""

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 15
IMPORTS = (
    "socket, json",
    "argparse",
    "dataclasses",
    "logging",
    "immutables",
    "msgspec",
    "asyncio",
    "qemu.qmp",
    "cryptography.x509",
    "numpy",
    "pyroute2",
    "aiohttp",
)


def main() -> None:
    programs = {"pass": "pass"} | {name: f"import {name}" for name in IMPORTS}
    took_ms: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS):  # round by round, so that a busy moment of the machine hits all alike
        for name, program in programs.items():
            took_ms[name].append(run_ms(program))
    start_ms = statistics.median(took_ms["pass"])
    print(f"python3 -c pass: {start_ms:.1f} ms (median of {ROUNDS}; {sys.version.split()[0]})")
    for name in IMPORTS:
        whole_ms = statistics.median(took_ms[name])
        print(f"  {name:18} +{whole_ms - start_ms:6.1f} ms = {whole_ms / start_ms:4.1f}x in all")


def run_ms(program: str) -> float:
    began = time.perf_counter()
    # Free of the caller's settings, as the installed commands are.
    subprocess.run([sys.executable, "-I", "-c", program], check=True, env={"PATH": os.defpath})
    return (time.perf_counter() - began) * 1000
