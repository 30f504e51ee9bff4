"""The power switch, on files that are not the kernel's."""

import os
import sys
from pathlib import Path

import pytest

from common.errors import NodeFailure
from noded.powercycle import RB_AUTOBOOT, KernelSwitch, NoSwitch, find_switch

FORBIDDEN = ("open", "import", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.system")
SEEN, FAILED = 1, 2  # how a process ends that did so, or that did not get as far


@pytest.fixture
def sysrq(tmp_path: Path) -> Path:
    path = tmp_path / "sysrq-trigger"
    path.touch()
    return path


def switch_at(sysrq: Path, calls: list[int]) -> KernelSwitch:
    """Return a switch whose system call is harmless."""
    switch = KernelSwitch(sysrq)
    switch._reboot = calls.append  # type: ignore[assignment]
    return switch


def test_the_key_is_pressed_through_a_descriptor_opened_before(sysrq: Path) -> None:
    calls: list[int] = []
    switch = switch_at(sysrq, calls)
    text = os.open(sysrq, os.O_RDONLY)
    sysrq.unlink()  # nothing may be looked up any more
    switch.check()
    switch.cycle()
    assert os.read(text, 10) == b"b"
    assert calls == []
    os.close(text)
    os.close(switch._sysrq)


def test_the_system_call_helps_where_the_key_does_not(sysrq: Path) -> None:
    calls: list[int] = []
    switch = switch_at(sysrq, calls)
    os.close(switch._sysrq)
    switch.cycle()
    assert calls == [RB_AUTOBOOT]


def test_nothing_is_opened_imported_or_started_on_the_way(sysrq: Path) -> None:
    switch = switch_at(sysrq, [])

    def audit(event: str, _: tuple[object, ...]) -> None:
        if event in FORBIDDEN:
            os._exit(SEEN)

    child = os.fork()  # a hook stays for as long as its process lives
    if child == 0:
        try:
            sys.addaudithook(audit)
            switch.check()
            switch.cycle()
            os._exit(0)
        finally:
            os._exit(FAILED)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"{SEEN}: it did such a thing; {FAILED}: failed"
    os.close(switch._sysrq)


@pytest.mark.parametrize(
    ("allowed", "root", "why"),
    [
        (True, "/srv/alpha", "shares its machine with others"),
        (False, "/srv/alpha", "shares its machine with others"),
        (False, "", "without --allow-powercycle"),
    ],
)
def test_a_machine_that_is_not_the_nodes_own_is_left_alone(
    allowed: bool, root: str, why: str
) -> None:
    switch = find_switch(allowed=allowed, root=root)
    assert isinstance(switch, NoSwitch)
    with pytest.raises(NodeFailure, match=why):
        switch.check()
    with pytest.raises(NodeFailure, match=why):
        switch.cycle()


def test_a_container_without_the_key_says_so(tmp_path: Path) -> None:
    with pytest.raises(NodeFailure, match="cannot power-cycle itself: cannot open"):
        KernelSwitch(tmp_path / "absent")
