"""Words for what does not fit, held against what msgspec says."""

from typing import Any

import msgspec
import pytest

from common.complaints import in_words
from common.errors import InvalidRequest
from common.messages import from_builtins
from common.model.template import DiskTemplate
from coordinator.operations.instance.create import CreateInstance

ORDER = {"instance_name": "web1", "disk_template": "diskless"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"warp": 9}, "there is no “warp”"),
        ({"disks": [{"size": 1, "warp": 9}]}, "there is no “warp” in disks[0]"),
        ({"disks": [{"mode": "rw"}]}, "disks[0]: a disk has at least 1 MiB, as in size=10G"),
        ({"start": "yes"}, "start is true or false, not text"),
        ({"disks": 5}, "disks is a list, not a whole number"),
        ({"pnode": 5}, "pnode is text or nothing, not a whole number"),
        ({"disk_template": "floppy"}, "disk_template cannot be 'floppy'"),
        ({"disks": [{"size": "12Q"}]}, "disks[0]: “12Q” is no size"),
        ({"tags": [1]}, "tags[0] is text, not a whole number"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        from_builtins(ORDER | wrong, CreateInstance, what="this")
    assert caught.value.message.startswith(f"Cannot read this: {told}")
    assert "`" not in caught.value.message


def test_other_words_stay_as_they_are() -> None:
    assert in_words("disk on fire") == "disk on fire"
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(5, DiskTemplate)
    assert "`" not in in_words(str(caught.value))
