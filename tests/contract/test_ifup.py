"""Root's script for taps of guests: when it is run, what it is told, and whose it may be."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.messages import from_builtins, from_json, to_json
from common.names import InstanceName, MiB
from common.noderpc.instances import GuestSpec
from common.noderpc.network import ToldOfNic
from noded.hypervisor.kvm import ifup
from noded.hypervisor.kvm.ifup import Ifup
from tests.contract.test_nics_of_guests import give, needs_qemu, nic, run_kvm, slots, taps
from tests.support.hypervisors import WEB1, KvmRig, goes_on

TELL = 'echo "$1 $(env | grep -v "^PWD=\\|^_=\\|^SHLVL=\\|^PATH=" | sort | tr "\\n" " ")" >> told'

LAN = {"NETWORK_NAME": "lan", "NETWORK_SUBNET": "192.0.2.0/24", "NETWORK_TAGS": "blue"}


class Script:
    """In a directory of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.chmod(0o755)

    def write(self, body: str = TELL, mode: int = 0o755) -> None:
        self.path.write_text(f"#!/bin/sh\ncd {self.path.parent}\n{body}\n")
        self.path.chmod(mode)

    @property
    def told(self) -> list[str]:
        told = self.path.parent / "told"
        return told.read_text().splitlines() if told.exists() else []


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "kvm-ifup-custom")


def guest() -> GuestSpec:
    routed = replace(nic(1), mode="routed", ip="192.0.2.7", link="main")
    return GuestSpec(
        id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(64), vcpus=1,
        nics=(replace(nic(0), vlan=".10"), routed), tags="amber blue",
        told_of_nics={routed.id: ToldOfNic(name="outside", network=LAN)},
    )  # fmt: skip


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_script_is_told_of_a_tap_as_by_ganeti_and_of_nothing_else(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTRY_SECRET", "of noded")
    script.write("env -0 > told.$INTERFACE_INDEX; echo $1 >> told")
    run(Ifup(script.path).run(guest(), {0: "gnt0", 1: "gnt1"}))
    told = [
        dict(pair.split("=", 1) for pair in path.read_text().rstrip("\0").split("\0"))
        for path in sorted(script.path.parent.glob("told.*"))
    ]
    assert script.told == ["gnt0", "gnt1"]
    shells = {"HOME", "LC_ALL", "OLDPWD", "PATH", "PWD", "SHLVL", "_"}
    assert [{name: each[name] for name in each.keys() - shells} for each in told] == [
        {
            "INSTANCE": "web1", "TAGS": "amber blue", "INTERFACE": "gnt0", "INTERFACE_INDEX": "0",
            "INTERFACE_UUID": nic(0).id, "MAC": nic(0).mac, "MODE": "bridged", "LINK": "br0",
            "BRIDGE": "br0", "VLAN": ".10",
        },
        {
            "INSTANCE": "web1", "TAGS": "amber blue", "INTERFACE": "gnt1", "INTERFACE_INDEX": "1",
            "INTERFACE_UUID": nic(1).id, "INTERFACE_NAME": "outside", "MAC": nic(1).mac,
            "MODE": "routed", "LINK": "main", "IP": "192.0.2.7", **LAN,
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    "network",
    [
        {"LD_PRELOAD": "/tmp/theirs.so"}, {"NETWORK_NAME": "lan\nLD_PRELOAD=theirs"},
        {"NETWORK_NAME": "lan\n"}, {"NETWORK_x": "1"}, {"NETWORK_NAME\n": "lan"},
        {"NETWORK_TAGS": "x" * 4097},
    ],
)  # fmt: skip
def test_nothing_but_networks_can_be_told_and_in_one_line(network: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        from_builtins({"network": network}, ToldOfNic, what="it")


def test_of_an_instance_of_which_there_is_nothing_to_tell_older_nodes_are_told_nothing() -> None:
    plain = replace(guest(), tags="", told_of_nics={})
    text = to_json(plain)
    assert b"tags" not in text
    assert b"told_of_nics" not in text
    assert from_json(text, GuestSpec, what="it") == plain


def test_a_script_that_fails_or_hangs_is_told_of(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.write("echo no route >&2; exit 3")
    with pytest.raises(NodeFailure, match="no route"):
        run(Ifup(script.path).run(guest(), {0: "gnt0"}))
    monkeypatch.setattr(ifup, "ALL_S", 0.2)
    script.write("sleep 60")
    with pytest.raises(NodeFailure, match="kvm-ifup-custom"):
        run(Ifup(script.path).run(guest(), {0: "gnt0"}))


def test_what_is_no_script_is_left_alone(script: Script) -> None:
    run(Ifup(script.path).run(guest(), {0: "gnt0"}))
    script.write(mode=0o644)
    run(Ifup(script.path).run(guest(), {0: "gnt0"}))
    assert script.told == []


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: nothing can be made another user's")
@pytest.mark.parametrize("theirs", ["owner", "mode", "directory", "kind"])
def test_a_script_that_others_could_have_changed_is_refused_and_not_run(
    script: Script, theirs: str
) -> None:
    script.write()
    match theirs:
        case "owner":
            os.chown(script.path, 65534, 0)
        case "mode":
            script.path.chmod(0o775)
        case "directory":
            script.path.parent.chmod(0o777)
        case _:
            script.path.unlink()
            script.path.mkdir()
    for order in (Ifup(script.path).check(), Ifup(script.path).run(guest(), {0: "gnt0"})):
        with pytest.raises(NodeFailure, match=r"root's|no program"):
            run(order)
    assert script.told == []


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: nothing can be made another user's")
def test_a_script_in_a_directory_that_others_could_replace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "ours").mkdir(parents=True)
    os.chown(tmp_path / "theirs", 65534, 0)
    script = Script(tmp_path / "theirs" / "ours" / "kvm-ifup-custom")
    script.write()
    with pytest.raises(NodeFailure, match=r"/theirs has to be root's"):
        run(Ifup(script.path).run(guest(), {0: "gnt0"}))
    assert script.told == []


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: nothing can be made another user's")
def test_the_script_that_was_checked_is_run_wherever_a_link_of_others_leads(
    script: Script,
) -> None:
    script.write('echo "$0" >> told')
    theirs = script.path.parent / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 0)
    (theirs / "way").symlink_to(script.path)
    linked = script.path.parent / "linked"
    linked.symlink_to(theirs / "way")
    run(Ifup(linked).run(guest(), {0: "gnt0"}))
    assert script.told == [str(script.path)]


@needs_qemu
def test_a_guest_without_nics_starts_whatever_the_script_is() -> None:
    async def scenario(rig: KvmRig) -> None:
        Script(rig.ifup).write(mode=0o775)
        first = rig.spec(nics=(nic(0),))
        with pytest.raises(NodeFailure, match=r"root's"):
            await rig.nodes["alpha"].ensure_running(first, taps(first.nics))
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@needs_qemu
def test_a_script_is_run_for_each_nic_that_a_guest_gets_and_keeps_one_from_starting() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, script = rig.nodes["alpha"], Script(rig.ifup)
        script.write("exit 1")
        first = rig.spec(nics=(nic(0),))
        with pytest.raises(NodeFailure, match=r"web1 cannot be started here: .*kvm-ifup-custom"):
            await alpha.ensure_running(first, taps(first.nics))
        assert await alpha.guests() == ()
        script.write()
        for _ in range(2):  # which starts nothing
            await alpha.ensure_running(first, taps(first.nics))
        await goes_on(rig, "alpha")
        for _ in range(2):
            await give(rig, nic(0), nic(1))
        assert [line.split()[0] for line in script.told] == ["gnt0", "gnt1"]
        script.write("exit 1")
        with pytest.raises(NodeFailure, match="kvm-ifup-custom"):
            await give(rig, nic(0), nic(1), nic(2))
        assert set(await slots(rig)) == {nic(0).id, nic(1).id}

    run_kvm(scenario)
