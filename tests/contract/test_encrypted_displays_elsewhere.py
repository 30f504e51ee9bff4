"""Encrypted displays of guests that have a root directory or a user of their own, or that move."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from common.errors import NodeFailure
from common.names import ClusterName, Port
from common.noderpc.instances import GuestSpec, GuestState
from common.tls.authority import make_authority
from noded.hypervisor.kvm.display_tls import AUTHORITY, CERTIFICATE, FILES, KEY
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.parse import parse_display, parse_spice
from noded.hypervisor.kvm.user import ROOT
from tests.contract.test_encrypted_displays import ADDRESS, CERTIFIED, NOW, Viewer, allow, signed
from tests.contract.test_guest_privileges import check_powerless, status
from tests.support.hypervisors import (
    MOVE,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    run_kvm,
    send,
    state_of,
)

PORTS = {"alpha": 11_518, "beta": 11_519}  # of SPICE; in the test, both nodes are one machine
LONG_AGO = NOW - 50 * 365 * 86_400
POOL = ((70_100, 70_149), (79_990, 90_000))
WAYS: dict[str, dict[str, Any]] = {
    "as usual": {},
    "rooted": {"use_chroot": True},
    "named": {"security_model": "user", "security_domain": "nobody-of-this-node"},
    "pooled": {"security_model": "pool"},
    "rooted and pooled": {"security_model": "pool", "use_chroot": True},
}

pytestmark = [
    pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no display was tested"),
    pytest.mark.skipif(os.geteuid() != ROOT, reason="NOT ROOT: guests have no users of their own"),
]


def shown(rig: KvmRig, viewer: Viewer, node: str, way: str = "as usual") -> GuestSpec:
    """Describe web1 with a display of either kind, both encrypted."""
    displays = {
        "vnc_bind_address": ADDRESS, "vnc_tls": True, "vnc_x509_verify": True,
        "vnc_x509_path": str(viewer.directory), "spice_bind": ADDRESS, "spice_use_tls": True,
    }  # fmt: skip
    return rig.spec(parameters=displays | WAYS[way], users=POOL, port=Port(PORTS[node]))


async def check_displays(rig: KvmRig, viewer: Viewer, node: str) -> None:
    """Look at both displays of web1, and see that nothing of their certificates is left."""
    home = rig.home(node)
    async with monitor(home.qmp_socket, "web1") as session:
        vnc = parse_display(await session.ask("query-vnc"))
        spice = parse_spice(await session.ask("query-spice"))
    assert spice == f"{ADDRESS}:{PORTS[node]}"
    own = viewer.context(signed(viewer.authority, "operator"))
    assert await viewer.sees(vnc, CERTIFIED, own) == 0
    _, writer = await asyncio.open_connection(
        ADDRESS, PORTS[node], ssl=viewer.context(), server_hostname=ADDRESS
    )
    writer.close()
    assert not keys_below(home.directory)


def keys_below(directory: Path) -> list[Path]:
    return [path for name in FILES for path in directory.rglob(name)]


def allow_both(rig: KvmRig, viewer: Viewer) -> None:
    allow(rig, "secret", viewer.directory)
    allow(rig, "spice", viewer.directory)


@pytest.mark.parametrize("way", WAYS)
def test_displays_show_their_certificates_as_whomever_and_wherever_a_guest_is_run(
    way: str,
) -> None:
    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        allow_both(rig, viewer)
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(shown(rig, viewer, "alpha", way), ())
        await goes_on(rig, "alpha")
        check_powerless(status(rig, "alpha"))
        await check_displays(rig, viewer, "alpha")

        there = shown(rig, viewer, "beta", way)
        await send(rig, await beta.ensure_receiving(there, (), MOVE), parameters=there.parameters)
        await beta.ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        check_powerless(status(rig, "beta"))
        await check_displays(rig, viewer, "beta")

    run_kvm(scenario)


def without_key(viewer: Viewer) -> None:
    (viewer.directory / KEY).unlink()


def with_a_key_for_all(viewer: Viewer) -> None:
    (viewer.directory / KEY).chmod(0o644)


def with_the_key_of_another(viewer: Viewer) -> None:
    viewer.put(KEY, signed(viewer.authority, "beta").key, 0o600)


def with_a_key_that_asks_for_a_password(viewer: Viewer) -> None:
    path = viewer.directory / KEY
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    viewer.put(KEY, key.private_bytes(pem, pkcs8, locked).decode(), 0o600)


def with_an_old_certificate(viewer: Viewer) -> None:
    old = signed(viewer.authority, "alpha", now=LONG_AGO)
    viewer.put(KEY, old.key, 0o600)
    viewer.put(CERTIFICATE, old.certificate, 0o644)


def with_an_old_authority(viewer: Viewer) -> None:
    old = make_authority(ClusterName("shop"), now=LONG_AGO)
    viewer.put(AUTHORITY, old.certificate, 0o644)


def with_the_authority_of_another(viewer: Viewer) -> None:
    other = make_authority(ClusterName("another"), now=NOW)
    viewer.put(AUTHORITY, other.certificate, 0o644)


def with_no_authority(viewer: Viewer) -> None:
    viewer.put(AUTHORITY, "to be filled in later", 0o644)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_key, "cannot open .*server-key.pem: No such file"),
        (with_a_key_for_all, "server-key.pem holds a secret"),
        (with_the_key_of_another, "server-key.pem is not the key of .*server-cert.pem"),
        (with_a_key_that_asks_for_a_password, "server-key.pem is not the key of"),
        (with_an_old_certificate, "server-cert.pem has expired"),
        (with_an_old_authority, "ca-cert.pem has expired"),
        (with_the_authority_of_another, "ca-cert.pem has not signed .*server-cert.pem"),
        (with_no_authority, "ca-cert.pem: This is no certificate"),
    ],
)
def test_a_guest_runs_on_whose_target_lacks_the_certificates_of_its_displays(
    change: Callable[[Viewer], None], says: str
) -> None:
    """The target refuses when it is asked, as a migration asks before it changes anything."""

    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        allow_both(rig, viewer)
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        await alpha.ensure_running(shown(rig, viewer, "alpha"), ())
        change(viewer)  # the source has read it
        there = shown(rig, viewer, "beta")
        with pytest.raises(NodeFailure, match=says):
            await beta.check_startable(there)
        with pytest.raises(NodeFailure, match=says):
            await beta.ensure_receiving(there, (), MOVE)
        assert await beta.guests() == ()
        assert not rig.home("beta").directory.exists()
        await goes_on(rig, "alpha")
        assert await state_of(alpha) is GuestState.RUNNING

    run_kvm(scenario)
