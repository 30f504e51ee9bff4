"""What QEMU says is understood; the samples were recorded from Debian's QEMU 7.2.22."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.noderpc.instances import GuestState, Rest
from noded.hypervisor.kvm.parse import (
    BlockNode,
    UnexpectedOutput,
    explain,
    parse_balloon,
    parse_block_nodes,
    parse_cpu_ticks,
    parse_devices,
    parse_display,
    parse_state,
    parse_version,
    was_turned_off,
)
from noded.hypervisor.kvm.progress import Progress, Transfer, parse_progress

ACTIVE = {
    "expected-downtime": 30, "status": "active", "setup-time": 1, "total-time": 1502,
    "ram": {
        "total": 134750208, "postcopy-requests": 0, "dirty-sync-count": 1, "page-size": 4096,
        "remaining": 121180160, "mbps": 67.30704, "transferred": 12617974, "normal": 3074,
    },
}  # fmt: skip


def test_version_is_found() -> None:
    text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003\n"
    assert parse_version(text) == "7.2.22"
    with pytest.raises(UnexpectedOutput, match="command not found"):
        parse_version("command not found")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("running", GuestState.RUNNING),
        ("finish-migrate", GuestState.RUNNING),
        ("inmigrate", GuestState.INCOMING),
        ("postmigrate", GuestState.MIGRATED),
        ("shutdown", GuestState.STOPPED),
        ("paused", GuestState.PAUSED),
        ("io-error", GuestState.PAUSED),
        ("guest-panicked", GuestState.PAUSED),
    ],
)
def test_state_is_told(status: str, state: GuestState) -> None:
    assert parse_state({"status": status, "singlestep": False, "running": False}) is state


def test_answer_without_status_is_unexpected() -> None:
    with pytest.raises(UnexpectedOutput):
        parse_state({})


def test_progress_of_a_source() -> None:
    progress = parse_progress(ACTIVE)
    assert progress.state is Transfer.ACTIVE
    assert (progress.sent, progress.total, progress.rounds) == (12617974, 134750208, 1)
    assert progress.share == pytest.approx(0.1007, abs=1e-3)
    assert progress.sentence == "round 1: 115 of 128 MiB left, 8.0 MiB/s"


@pytest.mark.parametrize(
    ("status", "sent", "state", "rest"),
    [
        ("postcopy-active", 0, Transfer.ACTIVE, None),  # it may go on here after all
        ("postcopy-device", 83192, Transfer.ACTIVE, None),
        ("postcopy-active", 83192, Transfer.HANDED_OVER, Rest.COMES),
        ("postcopy-recover", 83192, Transfer.HANDED_OVER, Rest.COMES),
        ("postcopy-paused", 83192, Transfer.CUT, Rest.CUT),
        ("completed", 83192, Transfer.COMPLETED, Rest.NONE),
    ],
)
def test_guest_has_left_by_post_copy_when_a_part_of_the_rest_was_sent(
    status: str, sent: int, state: Transfer, rest: Rest | None
) -> None:
    ram = {"total": 134750208, "postcopy-bytes": sent}
    progress = parse_progress({"status": status, "ram": ram})
    assert progress.state is state
    assert progress.has_left is (rest is not None)
    assert rest is None or progress.rest is rest


@pytest.mark.parametrize(
    ("status", "rest"),
    [("postcopy-active", Rest.COMES), ("postcopy-paused", Rest.CUT), ("completed", Rest.NONE)],
)
def test_target_tells_the_rest_without_figures(status: str, rest: Rest) -> None:
    progress = parse_progress({"status": status})
    assert (progress.has_left, progress.rest) == (True, rest)


@pytest.mark.parametrize(
    ("answer", "progress"),
    [
        ({}, Progress(state=Transfer.NONE)),
        ({"status": "setup"}, Progress(state=Transfer.ACTIVE)),
        ({"status": "failing"}, Progress(state=Transfer.ACTIVE)),
        ({"status": "cancelled"}, Progress(state=Transfer.CANCELLED)),
        (
            {"status": "failed", "error-desc": "The certificate is not trusted"},
            Progress(state=Transfer.FAILED, error="The certificate is not trusted"),
        ),
    ],
)
def test_other_answers(answer: dict[str, Any], progress: Progress) -> None:
    assert parse_progress(answer) == progress
    assert progress.share is None
    assert progress.sentence == "connecting"


def test_unknown_transfer_is_unexpected() -> None:
    with pytest.raises(UnexpectedOutput, match="colo"):
        parse_progress({"status": "colo"})


def test_cpu_ticks_are_added() -> None:
    stat = "42 (qemu) (x) 1) S 1 42 42 0 -1 4194624 17 0 0 0 205 31 0 0 20 0 4 0 991 0"
    assert parse_cpu_ticks(stat) == 236
    assert parse_cpu_ticks("") == 0


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (
            '2026-11-21T02:13:48.1Z qemu-system-x86_64: -device {"driver": "virtio-blk-pci"}: '
            'Failed to get "write" lock\nIs another process using the image [/srv/web1.img]?\n',
            "one of its disks is in use by another process",
        ),
        (
            "2026-11-21T02:13:48.1Z qemu-system-x86_64: cannot set up guest memory 'pc.ram': "
            "Cannot allocate memory\n",
            "this node has not enough memory for it",
        ),
        (
            "qemu-system-x86_64: unable to find CPU model 'z80'\n",
            "this node's QEMU does not know its machine_version or cpu_type",
        ),
        (
            "qemu-system-x86_64: could not configure /dev/net/tun (gnt0): Device or resource "
            "busy\n",
            "its network device is in use",
        ),
        ("Segmentation fault", "QEMU said: Segmentation fault"),
        ("", "QEMU said nothing"),
    ],
)
def test_last_words_are_explained(said: str, means: str) -> None:
    explanation = explain(said)
    assert explanation.startswith(means)
    assert "qemu-system" not in explanation
    assert "2026" not in explanation


def test_last_words_of_a_tpm_are_told_besides() -> None:
    told = explain("qemu-system-x86_64: tpm-emulator: no answer\n", "swtpm: Need\n read/write\n")
    assert told == "QEMU said: tpm-emulator: no answer; its TPM said: swtpm: Need read/write"


@given(st.text())
def test_any_last_words_are_one_line(said: str) -> None:
    assert len(explain(said).splitlines()) == 1
    assert len(explain(said)) < 1000


@pytest.mark.parametrize(
    ("answer", "display"),
    [
        ({"enabled": False}, ""),
        ({"enabled": True, "host": "127.0.0.1", "service": "5901"}, "127.0.0.1:5901"),
        ({"enabled": True, "host": "::1", "service": "5900"}, "[::1]:5900"),
    ],
)
def test_display_is_told_with_its_port(answer: dict[str, Any], display: str) -> None:
    assert parse_display(answer) == display


def test_block_nodes_are_known_by_name_with_what_they_are_made_of() -> None:
    image = {"virtual-size": 1048576, "filename": "/dev/fdset/6", "format": "raw"}
    answer = [
        {"node-name": "disk0", "file": "/dev/fdset/6", "drv": "raw", "image": image},
        {"node-name": "cdrom", "file": "/srv/a.iso", "drv": "raw", "image": image},
    ]
    assert parse_block_nodes(answer) == {
        "disk0": BlockNode(fdset=6, size=1 << 20),
        "cdrom": BlockNode(fdset=None, size=1 << 20),
    }
    every: list[dict[str, Any]] = [{}, {"node-name": "disk0", "file": "/dev/fdset/6"}, {"image": 1}]
    for bad in every:
        with pytest.raises(UnexpectedOutput):
            parse_block_nodes([bad])


def test_devices_are_known_by_name() -> None:
    answer = [{"name": "type", "type": "string"}, {"name": "virtio-disk0", "type": "child<x>"}]
    assert parse_devices(answer) == {"type", "virtio-disk0"}


def test_memory_that_a_guest_uses_is_read() -> None:
    assert parse_balloon({"actual": 134217728}) == 128
    assert parse_balloon({"actual": 134209536}) == 128  # 8 KiB less, as under TCG
    for odd in ({}, {"actual": None}, {"actual": "much"}):
        with pytest.raises(UnexpectedOutput, match="balloon is"):
            parse_balloon(odd)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("", False),
        ("7@1795305600.1:qemu_system_shutdown_request reason=6\n", True),
        ("qemu_system_shutdown_request reason=6\n2026 qemu: terminating on signal 15\n", True),
        ("qemu_system_shutdown_request reason=4\n", False),
        ("qemu_system_shutdown_request reason=8\n", False),
        ("qemu_system_shutdown_request reason=6\nqemu_system_shutdown_request reason=4\n", False),
        ("qemu_system_shutdown_request reason=66\n", False),
    ],
)
def test_what_a_guest_ended_for_is_read_from_its_log(log: str, expected: bool) -> None:
    assert was_turned_off(log) is expected
