"""What is run for DRBD, and how often."""

import pytest

from common.model.disk_parameters import DrbdParameters, Protocol
from common.names import MiB
from noded.storage.drbd.commands import custom_net_options
from noded.storage.drbd.eight import commands
from noded.storage.drbd.eight.speed import buffers
from noded.storage.drbd.module import Connection, Endpoint

LINK = Connection("gantry-d", Endpoint("192.0.2.1", 11000), Endpoint("192.0.2.2", 11000))
LINK6 = Connection("gantry-d", Endpoint("2001:db8::1", 11000), Endpoint("2001:db8::2", 11000))


def attached(parameters: DrbdParameters) -> str:
    return " ".join(commands.attach(3, "/dev/d", "/dev/m", MiB(1024), parameters))


def test_failing_volume_is_given_up_and_an_old_copy_not_taken_for_the_newest() -> None:
    assert attached(DrbdParameters()) == (
        "drbdsetup attach 3 /dev/d /dev/m flexible --size=1024M --on-io-error=detach "
        "--fencing=resource-only --c-plan-ahead=0 --resync-rate=61440K"
    )


def test_barriers_are_switched_off_by_letter() -> None:
    line = attached(DrbdParameters(disk_barriers="bf", meta_barriers=True))
    assert "--disk-barrier=no" in line
    assert "--disk-flushes=no" in line
    assert "--disk-drain" not in line
    assert "--md-flushes=no" in line


def test_dynamic_rate_has_its_own_parameters() -> None:
    line = attached(DrbdParameters(dynamic_resync=True, c_fill_target=100))
    assert "--c-plan-ahead=20 --c-fill-target=100s --c-delay-target=1 --c-max-rate=61440K" in line
    assert "--resync-rate" not in line


@pytest.mark.parametrize(
    ("parameters", "rate_kib"),
    [
        (DrbdParameters(), 61440),
        (DrbdParameters(resync_rate=1_000_000), 1_000_000),
        (DrbdParameters(dynamic_resync=True, c_max_rate=204_800), 204_800),
    ],
)
def test_half_of_the_buffers_hold_what_two_turns_ask_for_at_the_rate_that_is_set(
    parameters: DrbdParameters, rate_kib: int
) -> None:
    in_a_turn_kib = rate_kib / 10
    assert buffers(parameters) / 2 * 4 >= 2 * in_a_turn_kib


def test_buffers_are_no_fewer_than_drbd_has_by_itself_and_no_more_than_it_takes() -> None:
    assert buffers(DrbdParameters(resync_rate=1)) == 2048
    assert buffers(DrbdParameters(resync_rate=2**22)) == 131072


def test_what_the_operator_wishes_comes_last() -> None:
    parameters = DrbdParameters(
        disk_custom="--al-extents=6433 --x='a b'", net_custom="--max-buffers=8000",
        protocol=Protocol.A,
    )  # fmt: skip
    line = commands.attach(3, "/dev/d", "/dev/m", MiB(1), parameters)
    assert line[-2:] == ("--al-extents=6433", "--x=a b")
    assert custom_net_options(parameters) == ("--max-buffers=8000",)


def test_ends_are_named_by_family() -> None:
    assert commands.net_options(LINK)[2:] == ("ipv4:192.0.2.1:11000", "ipv4:192.0.2.2:11000")
    assert commands.net_options(LINK6)[2:] == (
        "ipv6:[2001:db8::1]:11000", "ipv6:[2001:db8::2]:11000",
    )  # fmt: skip
