"""The checker of what tiny guests write finds every kind of loss."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sequence import BYTES, RING, SECTOR, check, make_record


def image(numbers: range, start: int = 7) -> bytearray:
    """Return a disk to which one start of a guest has written numbers."""
    disk = bytearray(BYTES)
    write(disk, numbers, start)
    return disk


def write(disk: bytearray, numbers: range, start: int) -> None:
    for number in numbers:
        put(disk, (number - 1) % RING + 1, make_record(number, start))


def put(disk: bytearray, sector: int, data: bytes) -> None:
    disk[sector * SECTOR : (sector + 1) * SECTOR] = data


def test_empty_disk_holds_nothing() -> None:
    found = check(bytes(BYTES))
    assert (found.last, found.whole_to, found.wrong) == (0, 0, ())
    assert str(found) == "Nothing there; the last is 0; 0 starts."


def test_program_in_the_first_sector_is_not_looked_at() -> None:
    disk = image(range(1, 4))
    put(disk, 0, b"\x55" * SECTOR)
    assert check(disk).wrong == ()


@pytest.mark.parametrize("last", [1, 30, RING, RING + 1, 3 * RING + 5])
def test_whole_sequence_is_whole(last: int) -> None:
    found = check(image(range(1, last + 1)))
    assert (found.last, found.whole_to, found.wrong, found.starts) == (last, last, (), 1)
    assert found.first == max(1, last - RING + 1)


@pytest.mark.parametrize("last", [30, RING + 30])
def test_lost_write_is_named(last: int) -> None:
    disk = image(range(1, last + 1))
    kept = bytes(disk)
    older = make_record(last - 3 - RING, 7) if last > RING else bytes(SECTOR)
    put(disk, (last - 4) % RING + 1, older)
    found = check(disk)
    assert (found.last, found.whole_to) == (last, last - 4)
    assert found.wrong == (f"{last - 3} is missing, but {last} is there.",)
    assert check(kept).wrong == ()


def test_lost_end_shows_in_the_last_number() -> None:
    assert check(image(range(1, 21))).whole_to == 20


@pytest.mark.parametrize("at", [0, 4, 8, 12, 300, SECTOR - 1])
def test_flipped_bit_is_found_wherever_it_is(at: int) -> None:
    disk = image(range(1, 31))
    disk[9 * SECTOR + at] ^= 1
    found = check(disk)
    assert found.wrong == ("Sector 9 is damaged.", "9 is missing, but 30 is there.")
    assert found.whole_to == 8


def test_half_written_sector_is_damaged() -> None:
    disk = image(range(1, 31))
    disk[31 * SECTOR : 31 * SECTOR + 256] = make_record(31, 7)[:256]
    found = check(disk)
    assert (found.whole_to, found.wrong) == (30, ("Sector 31 is damaged.",))


def test_write_to_the_wrong_sector_is_found() -> None:
    disk = image(range(1, 31))
    put(disk, 100, make_record(12, 7))
    assert check(disk).wrong == ("Sector 100 holds 12, which belongs elsewhere.",)


def test_short_image_is_damaged() -> None:
    found = check(image(range(1, RING + 1))[: -5 * SECTOR])
    assert found.wrong == tuple(f"Sector {RING - back} is damaged." for back in (4, 3, 2, 1, 0))


def test_next_start_goes_on() -> None:
    disk = image(range(1, 31))
    write(disk, range(31, 61), start=8)
    found = check(disk)
    assert (found.whole_to, found.starts, found.wrong) == (60, 2, ())


def test_two_guests_at_once_are_found() -> None:
    disk = image(range(1, 31))
    write(disk, range(31, 41), start=8)
    write(disk, range(41, 51), start=7)
    assert check(disk).wrong == ("41 was written by a guest after another had taken its place.",)


def test_long_list_of_damage_is_cut_short() -> None:
    disk = image(range(1, 101))
    for sector in range(1, 50):
        disk[sector * SECTOR] ^= 1
    assert str(check(disk)).endswith("Sector 10 is damaged.\n… and 88 more.")


@pytest.mark.parametrize(
    ("numbers", "broken", "status", "says"),
    [
        (range(1, 6), 0, 0, "Whole from 1 to 5; the last is 5; 1 starts.\n"),
        (range(1, 6), 2, 1, "Whole from 1 to 1; the last is 5"),
    ],
)
def test_command_tells_by_its_status(
    tmp_path: Path, numbers: range, broken: int, status: int, says: str
) -> None:
    disk = image(numbers)
    disk[broken * SECTOR] ^= 1
    (tmp_path / "disk").write_bytes(disk)
    done = command(str(tmp_path / "disk"))
    assert done.returncode == status
    assert done.stdout.startswith(says)


def test_command_names_a_disk_that_is_not_there(tmp_path: Path) -> None:
    done = command(str(tmp_path / "disk"))
    assert done.returncode == 2
    assert "disk cannot be read: No such file" in done.stderr


def command(disk: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "tests.support.sequence", disk)
    return subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: TID251 -- there is no loop to block here
