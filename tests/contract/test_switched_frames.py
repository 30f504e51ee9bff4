"""What guests send reaches those of their VLAN, and nobody else; Debian's Open vSwitch is real."""

import contextlib
import os
import select
import struct
from collections.abc import Iterator

import pytest

from common.names import InstanceId, NicId
from common.noderpc.network import NicSpec
from noded.network.linux import LinuxNetwork
from noded.network.tuntap import open_tap
from noded.system.threads import in_thread
from tests.support.openvswitch import SWITCH, OpenVSwitch, with_switches

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
MAC = "aa:00:00:12:34:56"
EXPERIMENT, VLAN = b"\x88\xb5", b"\x81\x00"
HEADER = bytes(10)  # before each frame: nothing is left to the host
POLL_S, PATIENCE_S = 0.2, 60.0

Frame = tuple[int | None, str]  # in which VLAN, and what it says


class Guest:
    """The end of a tap that QEMU has open; it notes what it hears."""

    def __init__(self, tap: str) -> None:
        self.end = open_tap(tap)
        os.set_blocking(self.end, False)
        self.heard: set[Frame] = set()

    def send(self, word: str, vlan: int | None = None) -> None:
        addresses = b"\xff" * 6 + bytes.fromhex(MAC.replace(":", ""))
        tag = b"" if vlan is None else VLAN + struct.pack("!H", vlan)
        os.write(self.end, HEADER + addresses + tag + EXPERIMENT + word.encode().ljust(46, b"\0"))

    def listen(self, wait_s: float) -> None:
        """Hear what has arrived, and what does until nothing has for a while."""
        while select.select([self.end], [], [], wait_s)[0]:
            frame = os.read(self.end, 2048)[len(HEADER) + 12 :]
            is_tagged = frame.startswith(VLAN)
            vlan = int.from_bytes(frame[2:4], "big") & 0xFFF if is_tagged else None
            body = frame[4:] if is_tagged else frame
            if body.startswith(EXPERIMENT):
                self.heard.add((vlan, body[2:].rstrip(b"\0").decode()))


def tell(speaker: Guest, listeners: tuple[Guest, ...], word: str, vlan: int | None = None) -> None:
    """Repeat a word until each listener has heard it: a new port may not be open yet."""
    for _ in range(int(PATIENCE_S / POLL_S)):
        speaker.send(word, vlan)
        for each in listeners:
            each.listen(POLL_S)
        if all(word in {said for _, said in each.heard} for each in listeners):
            return
    raise AssertionError(f"“{word}” is not heard by all.")


@contextlib.contextmanager
def guests(taps: dict[str, str]) -> Iterator[dict[str, Guest]]:
    made = {name: Guest(tap) for name, tap in taps.items()}
    try:
        yield made
    finally:
        for each in made.values():
            os.close(each.end)


async def plugged_in(network: LinuxNetwork, vlans: dict[str, str]) -> dict[str, str]:
    """Return the taps of nics with these VLANs, by the names of their guests."""
    nics = tuple(
        NicSpec(
            id=NicId(f"{number:08x}-bbbb-4ccc-8ddd-00000000000a"), instance=WEB1, mac=MAC,
            mode="openvswitch", link="ovs0", vlan=vlan, guarded=False,
        )
        for number, vlan in enumerate(vlans.values(), start=1)
    )  # fmt: skip
    return dict(zip(vlans, await network.ensure_taps(nics), strict=True))


@pytest.mark.parametrize("datapath", ["netdev", "system"])
def test_frames_stay_in_their_vlan(datapath: str) -> None:
    vlans = {
        "ten": ".10", "also ten": ".10", "twenty": ".20", "tags": ":10:20", "both": ".10:20",
        "thirty": ":30", "any": "",
    }  # fmt: skip
    expected: dict[str, set[Frame]] = {
        "also ten": {(None, "untagged")},
        "twenty": {(None, "tagged")},
        "tags": {(10, "untagged")},
        "both": {(None, "untagged"), (20, "tagged")},
        "thirty": set(),
        "any": {(10, "untagged"), (20, "tagged")},
    }

    def speak(taps: dict[str, str]) -> None:
        with guests(taps) as there:
            ten, tags, either = there["ten"], there["tags"], there["any"]
            everybody = tuple(there.values())
            for vlan, whose in (
                (10, ("ten", "also ten", "tags", "both")),
                (20, ("twenty", "tags", "both")),
                (30, ("thirty",)),
            ):
                tell(either, tuple(there[name] for name in whose), f"begin {vlan}", vlan)
            tell(ten, (either,), "begin")
            tell(tags, (either,), "begin too", 20)
            ten.send("wrong", 20)  # it is in one VLAN, and does not tag
            tags.send("wrong", 30)
            tags.send("wrong")
            ten.send("untagged")
            tags.send("tagged", 20)
            # When these have arrived, so have those before them, or never will.
            tell(ten, tuple(there[name] for name in ("also ten", "tags", "both", "any")), "end")
            tell(tags, tuple(there[name] for name in ("twenty", "both", "any")), "end too", 20)
            tell(either, (there["thirty"],), "end of all", 30)
            for each in everybody:
                each.listen(0)
            words = ("wrong", "untagged", "tagged")
            heard = {
                name: {(vlan, said) for vlan, said in each.heard if said in words}
                for name, each in there.items()
            }
            assert heard == {"ten": set(), **expected}

    async def scenario(network: LinuxNetwork, _: OpenVSwitch) -> None:
        await in_thread(speak, await plugged_in(network, vlans))

    with_switches(datapath, scenario)


@pytest.mark.parametrize("datapath", ["netdev", "system"])
def test_guests_go_on_talking_after_a_restart_of_the_switch(datapath: str) -> None:
    async def scenario(network: LinuxNetwork, switch: OpenVSwitch) -> None:
        taps = await plugged_in(network, {"one": ".10", "other": ".10"})
        with guests(taps) as there:
            await in_thread(tell, there["one"], (there["other"],), "before")
            switch.kill(SWITCH)
            await switch.start(SWITCH)
            await in_thread(tell, there["one"], (there["other"],), "after")

    with_switches(datapath, scenario)
