"""What a node asks DRBD's module and LVM for an activation, whatever else is there."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from common.noderpc.disks import Access
from tests.support.fake_pair import FakePair
from tests.support.pairs import whole


def count(of: Any, asked: Counter[str], *names: str) -> None:
    """Have calls be counted."""
    for name in names:
        setattr(of, name, _counted(getattr(of, name), name, asked))


def _counted(real: Callable[..., Any], name: str, asked: Counter[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        asked[name] += 1
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize("others", [0, 1, 100])
def test_an_activation_asks_for_as_much_whatever_the_number_of_devices(others: int) -> None:
    async def story(pair: FakePair) -> None:
        await whole(pair)
        await pair.one.detach()
        for number in range(others):
            await pair.one.module.create(f"gantry-{number}", 1000 + number)
        changes = ("create", "attach", "connect", "allow_two", "promote", "demote", "remove")
        count(pair.one.module, asked, *changes)  # a look needs no program
        count(pair.one.storage.devices.volumes, asked, "activate", "find", "deactivate")
        await pair.one.attach(Access.STANDBY)
        await pair.one.attach(Access.SOLE)
        await pair.one.attach(Access.SOLE)

    asked: Counter[str] = Counter()
    pair = FakePair()
    pair.run(story(pair))
    assert asked == {"activate": 1, "create": 1, "attach": 1, "connect": 1, "promote": 1}
