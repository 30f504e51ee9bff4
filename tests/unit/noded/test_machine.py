from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import NodeFailure
from common.names import MiB
from noded.machine.driver import LinuxMachine
from noded.machine.parse import (
    Memory,
    Processors,
    parse_cpuinfo,
    parse_loadavg,
    parse_meminfo,
    parse_statm,
    split_memory,
)

MEMINFO = """\
MemTotal:       24682848 kB
MemFree:        21446160 kB
MemAvailable:   23448524 kB
Buffers:          138420 kB
"""
CPUINFO = """\
processor\t: 0
physical id\t: 0
processor\t: 1
physical id\t: 0
processor\t: 2
physical id\t: 1
flags\t\t: fpu vme: odd
"""


def test_memory_is_read_in_mib() -> None:
    assert parse_meminfo(MEMINFO) == Memory(total=MiB(24_104), available=MiB(22_898))


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB", "MemTotal: x kB\nMemAvailable: 1 kB"])
def test_odd_memory_is_refused(text: str) -> None:
    with pytest.raises(NodeFailure, match="meminfo"):
        parse_meminfo(text)


def test_processors_and_sockets_are_counted() -> None:
    assert parse_cpuinfo(CPUINFO) == Processors(cpus=3, sockets=2)
    assert parse_cpuinfo("processor\t: 0\nBogoMIPS\t: 50.00\n") == Processors(cpus=1, sockets=1)
    assert parse_cpuinfo("") == Processors(cpus=1, sockets=1)


def test_load_is_the_one_minute_average() -> None:
    assert parse_loadavg("0.61 0.50 0.31 2/189 4711\n") == 0.61
    with pytest.raises(NodeFailure, match="loadavg"):
        parse_loadavg("")


def test_resident_memory_of_a_process() -> None:
    assert parse_statm("65536 25600 900 1 0 1200 0", 4096) == 100
    assert parse_statm("", 4096) == 0


@given(
    total=st.integers(0, 10**6), available=st.integers(0, 10**6),
    given_mib=st.lists(st.integers(0, 10**5)), resident=st.integers(0, 10**6),
)  # fmt: skip
def test_no_part_of_memory_is_negative(
    total: int, available: int, given_mib: list[int], resident: int
) -> None:
    memory = Memory(total=MiB(total), available=MiB(available))
    given_memory = [MiB(each) for each in given_mib]
    free, own = split_memory(memory, given=given_memory, resident=MiB(resident))
    assert free >= 0
    assert own >= 0


def test_promised_memory_is_not_free_even_if_untouched() -> None:
    memory = Memory(total=MiB(10_000), available=MiB(8_500))
    # The node uses 1000, and a guest of 4000 has touched 500 so far.
    assert split_memory(memory, given=[MiB(4_000)], resident=MiB(500)) == (5_000, 1_000)


def test_this_machine_is_read() -> None:
    report = LinuxMachine().look()
    assert 0 < report.memory.available < report.memory.total
    assert report.processors.cpus >= 1
    assert report.memory_nodes >= 1
    assert len(report.boot_id) == 36
    assert report.load >= 0


def test_a_missing_proc_is_said(tmp_path: Path) -> None:
    with pytest.raises(NodeFailure, match="Cannot read"):
        LinuxMachine(tmp_path / "absent")
