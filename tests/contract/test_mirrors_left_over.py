"""What becomes of devices that are in the way of mirrored disks, or left over of them."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict
from common.names import DiskId
from common.noderpc.disks import Access
from common.noderpc.mirrors import Link
from noded.storage.drbd.mirror import OURS
from tests.support.pairs import Pair, begun, refusal, whole


def test_device_of_somebody_else_is_neither_used_nor_taken_away(pair: Pair) -> None:
    async def story() -> None:
        one = pair.one
        await one.storage.ensure_present(one.disk)
        minor = one.disk.ends[0].minor
        await one.module.create("precious", minor, 0)
        with pytest.raises(Conflict, match="that of precious, which is none of ours"):
            await one.attach(Access.STANDBY)
        assert [device.resource for device in await one.module.look()] == ["precious"]
        await one.module.remove("precious")

    pair.run(story())


def test_remnant_of_another_disk_makes_way(pair: Pair) -> None:
    async def story() -> None:
        one = pair.one
        await one.storage.ensure_present(one.disk)
        minor = one.disk.ends[0].minor
        await one.module.create(f"{OURS}dddddddd-0000-4000-8000-00000000000f", minor, 0)
        await one.attach(Access.STANDBY)
        assert [device.resource for device in await one.module.look()] == [one.resource]

    pair.run(story())


def test_device_of_another_disk_that_is_connected_does_not_make_way(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        one = pair.one
        foreign = replace(
            one.disk, id=DiskId("dddddddd-0000-4000-8000-00000000000f"), ends=one.disk.ends[:1]
        )
        with pytest.raises(Conflict, match=f"{one.resource} has /dev/drbd"):
            await one.storage.attach(foreign, Access.STANDBY)
        assert (await one.report()).link is Link.CONNECTED

    pair.run(story())


def test_device_that_nobody_is_to_have_is_taken_away_unless_it_is_in_use(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        assert "it is primary" in await refusal(one.upkeep.take_away(one.disk.id))
        assert "connected to another copy" in await refusal(other.upkeep.take_away(other.disk.id))
        await one.detach()
        await other.until(lambda r: r.link is Link.CONNECTING, "the other side to be gone")
        await other.upkeep.take_away(other.disk.id)
        await other.upkeep.take_away(other.disk.id)
        assert await other.module.look() == ()

    pair.run(story())
