"""Devices are found as they are named, whoever names them: numbers may be texts, as of Ganeti's."""

import pytest

from common.errors import InvalidRequest, NotFound
from common.model.nic import Nic
from common.names import InstanceName, NicId
from coordinator.operations.instance.which import find_device, place_for

WEB1 = InstanceName("web1")
NICS = tuple(
    Nic(uuid=NicId(f"00000000-0000-4000-8000-00000000000{n}"), ctime=0, mtime=0, mac=f"aa:{n}",
        name=name)
    for n, name in enumerate(("", "lan", "7"))
)  # fmt: skip


@pytest.mark.parametrize(
    ("which", "number"),
    [
        (0, 0), ("0", 0), ("2", 2), (-1, 2), ("-1", 2), ("lan", 1), ("7", 2), (NICS[1].uuid, 1),
    ],
)  # fmt: skip
def test_a_device_is_found_by_number_name_and_uuid(which: int | str, number: int) -> None:
    assert find_device(NICS, which, kind="nic", name=WEB1) == number


@pytest.mark.parametrize("which", [3, "3", "-2", "", "1.0", "²", "9" * 5000, "wan"])
def test_what_is_none_is_told_with_how_many_there_are(which: int | str) -> None:
    with pytest.raises(NotFound, match="it has 3, counted from 0"):
        find_device(NICS, which, kind="nic", name=WEB1)


@pytest.mark.parametrize(("where", "place"), [(-1, 3), ("-1", 3), (0, 0), ("1", 1), ("3", 3)])
def test_a_new_device_gets_the_place_that_is_asked_for(where: int | str, place: int) -> None:
    assert place_for(NICS, where, kind="nic", name=WEB1) == place


@pytest.mark.parametrize("where", [4, "4", "-2", "lan", ""])
def test_a_place_that_is_next_to_no_other_is_refused(where: int | str) -> None:
    with pytest.raises(InvalidRequest, match="not at “"):
        place_for(NICS, where, kind="nic", name=WEB1)
