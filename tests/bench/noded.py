"""What noded costs a node that has nothing to do: memory, processor, and the time to start."""

import argparse
import statistics
import time
from collections.abc import Iterable

from tests.bench.jobs import finish, many
from tests.bench.trio import GANETI, Machine, cpu_s, memory_mib, trio

IDLE_S = 10.0
STARTS = 5
GANETI_MIB = 58.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=IDLE_S)
    seconds = parser.parse_args().seconds
    with trio() as machines:
        print("noded, member of a cluster of three, MiB")
        report_memory("idle", machines)
        finish(machines[0], many(machines[0], 1000))
        report_memory("after 1,000 jobs", machines)
        print(f"  {'':20} resident {GANETI_MIB:5.1f}: {GANETI}")
        report_idleness(machines, seconds)
        report_start(machines[2])


def report_memory(when: str, machines: Iterable[Machine]) -> None:
    found = [memory_mib(noded_of(machine)) for machine in machines]
    resident, locked, virtual = (
        statistics.median(memory[key] for memory in found) for key in ("VmRSS", "VmLck", "VmSize")
    )
    print(
        f"  {when:20} resident {resident:5.1f} = {resident / GANETI_MIB:.2f} x Ganeti, "
        f"locked {locked:5.1f}, address space {virtual:5.1f}"
    )


def report_idleness(machines: Iterable[Machine], seconds: float) -> None:
    pids = {f"noded {machine.name}": noded_of(machine) for machine in machines} | {
        f"coordinator {machine.name}": pid
        for machine in machines
        for pid in machine.processes("gantry-coordinator")
    }
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    shares = {name: (cpu_s(pid) - before[name]) / seconds * 100 for name, pid in pids.items()}
    told = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
    print(f"  % of a processor, {seconds:g} s idle: {told}")


def report_start(machine: Machine) -> None:
    took_s = []
    for _ in range(STARTS):
        machine.kill("gantry-noded")
        began = time.perf_counter()
        machine.start_noded()
        took_s.append(time.perf_counter() - began)
    print(f"  from start to ready: {statistics.median(took_s):.2f} s, median of {STARTS}")


def noded_of(machine: Machine) -> int:
    (pid,) = machine.processes("gantry-noded")
    return pid


if __name__ == "__main__":
    main()
