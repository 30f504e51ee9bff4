"""Displays of real guests: each has a port of its own, and a password if that is asked for."""

import asyncio
from pathlib import Path

import pytest

from common.errors import NodeFailure
from noded.hypervisor.kvm import home
from tests.support.guest_orders import WEB2
from tests.support.hypervisors import KvmRig, has_qemu, run_kvm

pytestmark = pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no display was tested")


def test_displays_get_ports_of_their_own_and_are_told() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        parameters = {"vnc_bind_address": "127.0.0.1"}
        await alpha.ensure_running(rig.spec(parameters=parameters), ())
        second = rig.spec(id=WEB2, name="web2", disks=(), parameters=parameters)
        await alpha.ensure_running(second, ())
        await rig.restart_noded("alpha")
        displays = [guest.display for guest in await rig.nodes["alpha"].guests()]
        assert len(set(displays)) == 2
        for display in displays:
            host, _, port = display.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            assert (await reader.readexactly(4)) == b"RFB "
            writer.close()

    run_kvm(scenario)


def command_line(guest: home.Home) -> str:
    return Path(f"/proc/{int(guest.pid.read_text())}/cmdline").read_text()


def test_a_display_with_a_password_lets_in_nobody_without_it() -> None:
    """It wants one (security type 2 of RFC 6143), and no process shows it."""

    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        file = rig.root / "password"
        file.write_text("s3cret!\n")
        file.chmod(0o600)
        parameters = {"vnc_bind_address": "127.0.0.1", "vnc_password_file": str(file)}
        with pytest.raises(NodeFailure, match="may not be a password or a key of a display here"):
            await alpha.ensure_running(rig.spec(parameters=parameters), ())
        with rig.rules.open("a") as rules:
            rules.write(f"secret {file}\n")
        await alpha.ensure_running(rig.spec(parameters=parameters), ())
        (guest,) = await alpha.guests()
        assert guest.display_wants_password
        host, _, port = guest.display.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(await reader.readexactly(12))  # the version
        count = (await reader.readexactly(1))[0]
        assert await reader.readexactly(count) == b"\x02"
        writer.write(b"\x02")
        challenge = await reader.readexactly(16)
        writer.write(challenge)  # which is not encrypted with the password
        assert await reader.readexactly(4) == b"\x00\x00\x00\x01"
        writer.close()
        assert "s3cret" not in command_line(rig.home("alpha"))

    run_kvm(scenario)
