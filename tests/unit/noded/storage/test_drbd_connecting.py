"""What the module is told of the other end before it looks for it."""

from pathlib import Path

import pytest

from common.model.disk_parameters import DrbdParameters
from noded.storage.drbd import line
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.messages import as_number
from noded.storage.drbd.module import Connection
from noded.storage.drbd.nine import netlink as nine
from noded.system.execute import Finished
from tests.unit.noded.storage.drbd_module import LINK, SECRET, Module, Programs, run, system


def test_secret_is_on_no_command_line(eight: Module, told: list[dict[int, bytes]]) -> None:
    drbd = eight(programs := Programs())
    run(
        drbd.connect(
            LINK, SECRET, DrbdParameters(net_custom="--ping-int=1"), discard=False, allow_two=False
        )
    )
    assert SECRET not in " ".join(programs.ran)
    assert told[0][1] == SECRET.encode() + b"\0"


def test_to_8_4_the_operators_options_are_told_with_the_peer(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    """Later, the module may be checking the peer's proof, with what it then takes away."""
    drbd = eight(programs := Programs())
    custom = "--ping-int=1 --max-buffers=8k --tcp-cork=no --use-rle --after-sb-1pri=consensus"
    parameters = DrbdParameters(net_custom=f"{custom} --verify-alg=md5 --protocol=A")
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert programs.ran == []
    rest = (1, 2, 24, 25, 34)
    assert {number: value for number, value in told[0].items() if number not in rest} == {
        9: as_number(1), 14: as_number(8192), 26: b"\0", 29: b"\1", 18: as_number(7),
        4: b"md5\0", 6: as_number(1),
    }  # fmt: skip


def test_8_4_gets_buffers_for_its_rate_and_finds_its_peer_sooner_than_a_ping_is_given_up(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    drbd = eight(Programs())
    run(drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=False))
    assert told[0][14] == as_number(6144)
    assert told[0][34] == as_number(2)


def test_the_operator_has_the_last_word_on_buffers_and_on_how_long_a_peer_is_watched(
    eight: Module, told: list[dict[int, bytes]]
) -> None:
    custom = "--max-buffers=2000 --socket-check-timeout=10"
    drbd = eight(programs := Programs())
    parameters = DrbdParameters(net_custom=custom)
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert (told[0][14], told[0][34]) == (as_number(2000), as_number(10))
    assert programs.ran == []


@pytest.mark.parametrize(
    "custom",
    [
        "--x=1",
        "--ping-int=a",
        "--ping-int",
        "--ping-int=0",
        "--sndbuf-size=11M",
        "--tcp-cork=maybe",
    ],
)
def test_an_option_that_is_not_understood_is_left_to_drbdsetup(
    eight: Module, told: list[dict[int, bytes]], custom: str
) -> None:
    drbd = eight(programs := Programs())
    parameters = DrbdParameters(net_custom=f"--ping-int=9 {custom}")
    run(drbd.connect(LINK, SECRET, parameters, discard=False, allow_two=False))
    assert 9 not in told[0]
    assert [line.split()[-2:] for line in programs.ran] == [["--ping-int=9", custom]]


def test_to_9_the_operators_options_are_told_before_the_peer_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    async def program(*argv: str, timeout_s: float) -> Finished:
        assert timeout_s > 0
        order.append(argv[1])
        return Finished(b"", b"")

    monkeypatch.setattr(nine, "introduce", lambda *_: order.append("introduce"))
    monkeypatch.setattr(nine, "meet", lambda *_, discard: order.append(f"meet {discard}"))
    drbd = LinuxDrbd(program, root=system(tmp_path, version="9.2.16"))
    parameters = DrbdParameters(net_custom="--ping-int=1")
    run(drbd.connect(LINK, SECRET, parameters, discard=True, allow_two=False))
    assert order == ["introduce", "net-options", "meet True"]


@pytest.mark.parametrize("allowed", [False, True])
def test_whether_both_may_write_is_told_before_the_other_end_can_be_met(
    eight: Module, told: list[dict[int, bytes]], allowed: bool
) -> None:
    drbd = eight(programs := Programs())
    run(drbd.connect(LINK, SECRET, DrbdParameters(), discard=False, allow_two=allowed))
    assert (told[0][24], programs.ran) == (bytes([allowed]), [])


def test_kernel_without_digests_connects_without_proof(
    eight: Module, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[dict[int, bytes]] = []

    def connect(_: Connection, options: dict[int, bytes]) -> None:
        made.append(options)
        if 2 in options:
            raise line.DigestUnknown("This node's kernel has no HMAC for DRBD to use.")

    monkeypatch.setattr(netlink, "connect", connect)
    run(eight(Programs()).connect(LINK, SECRET, DrbdParameters(), discard=True, allow_two=False))
    assert [1 in options for options in made] == [True, False]
    assert [options[25] for options in made] == [b"\1", b"\1"]
    assert "does not prove who it is" in caplog.text
    assert SECRET not in caplog.text
