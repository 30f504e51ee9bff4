"""Displays that are encrypted: what viewers are shown, and what is asked of them, by the real QEMU.

Source: RFC 6143, and the security type VeNCrypt (19) of the RFB protocol as it is kept by its
community, of which 257 is TLS without a certificate, and 260 with one.
"""

import asyncio
import ssl
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from common.names import ClusterName, NodeName, Port
from common.tls.authority import issue, make_authority
from common.tls.keys import KeyPair, make_key, make_request
from tests.support.hypervisors import KvmRig, has_qemu, run_kvm

pytestmark = pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: no display was tested")

VENCRYPT, ANONYMOUS, CERTIFIED = 19, 257, 260
ADDRESS = "127.0.0.1"
NOW = time.time()  # before which no viewer finds a certificate valid


def signed(authority: KeyPair, name: str, now: float = NOW) -> KeyPair:
    node, key = NodeName(name), make_key()
    request = make_request(key, node)
    return KeyPair(key, issue(authority, request, node=node, addresses=(ADDRESS,), now=now))


class Viewer:
    """Somebody with an authority that he trusts, and perhaps a certificate of his own."""

    def __init__(self, root: Path) -> None:
        self.authority = make_authority(ClusterName("shop"), now=NOW)
        self.directory = root / "x509"
        self.directory.mkdir()
        shown = signed(self.authority, "alpha")
        self.put("ca-cert.pem", self.authority.certificate, 0o644)
        self.put("server-cert.pem", shown.certificate, 0o644)
        self.put("server-key.pem", shown.key, 0o600)

    def put(self, name: str, text: str, mode: int) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def context(self, own: KeyPair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.certificate)
        if own:
            pem = self.put("own.pem", own.key + own.certificate, 0o600)
            context.load_cert_chain(pem)
        return context

    async def sees(self, display: str, subtype: int, context: ssl.SSLContext) -> int:
        """Return what VNC says in the end: 0 if the viewer gets in."""
        host, _, port = display.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(await reader.readexactly(12))  # the version
            count = (await reader.readexactly(1))[0]
            assert await reader.readexactly(count) == bytes([VENCRYPT]), "nothing in the clear"
            writer.write(bytes([VENCRYPT]))
            writer.write(await reader.readexactly(2))  # its version
            assert await reader.readexactly(1) == b"\0"
            kinds = (await reader.readexactly(1))[0]
            offered = struct.unpack(f">{kinds}I", await reader.readexactly(4 * kinds))
            assert offered == (subtype,)
            writer.write(struct.pack(">I", subtype))
            assert await reader.readexactly(1) == b"\1"
            await writer.start_tls(context, server_hostname=ADDRESS)
            (result,) = struct.unpack(">I", await reader.readexactly(4))
            return int(result)
        finally:
            writer.close()


def allow(rig: KvmRig, word: str, path: Path) -> None:
    with rig.rules.open("a") as rules:
        rules.write(f"{word} {path}\n")


async def display_of(rig: KvmRig, parameters: Mapping[str, Any], port: int = 0) -> str:
    spec = rig.spec(parameters=dict(parameters), port=Port(port))
    await rig.nodes["alpha"].ensure_running(spec, ())
    (guest,) = await rig.nodes["alpha"].guests()
    return guest.display


def nothing_is_lent(rig: KvmRig) -> bool:
    return not [*rig.home("alpha").directory.glob("*-tls")]


def test_a_display_shows_its_certificate_to_whoever_comes() -> None:
    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        given = {"vnc_bind_address": ADDRESS, "vnc_tls": True,
                 "vnc_x509_path": str(viewer.directory)}  # fmt: skip
        with pytest.raises(NodeFailure, match="may not be a password or a key of a display here"):
            await display_of(rig, given)
        allow(rig, "secret", viewer.directory)
        display = await display_of(rig, given)
        assert await viewer.sees(display, CERTIFIED, viewer.context()) == 0
        stranger = Viewer.__new__(Viewer)
        stranger.authority = make_authority(ClusterName("another"), now=NOW)
        with pytest.raises(ssl.SSLCertVerificationError):
            await viewer.sees(display, CERTIFIED, stranger.context())
        assert nothing_is_lent(rig)

    run_kvm(scenario)


def test_a_display_that_asks_for_certificates_lets_in_nobody_without_one() -> None:
    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        allow(rig, "secret", viewer.directory)
        display = await display_of(rig, {
            "vnc_bind_address": ADDRESS, "vnc_tls": True, "vnc_x509_verify": True,
            "vnc_x509_path": str(viewer.directory),
        })  # fmt: skip
        mine = viewer.context(signed(viewer.authority, "operator"))
        assert await viewer.sees(display, CERTIFIED, mine) == 0
        another = make_authority(ClusterName("another"), now=NOW)
        for context in (viewer.context(), viewer.context(signed(another, "operator"))):
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await viewer.sees(display, CERTIFIED, context)

    run_kvm(scenario)


def test_a_display_without_a_certificate_is_encrypted_all_the_same() -> None:
    async def scenario(rig: KvmRig) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # the last without certificates
        context.set_ciphers("aNULL:@SECLEVEL=0")
        display = await display_of(rig, {"vnc_bind_address": ADDRESS, "vnc_tls": True})
        assert await Viewer(rig.root).sees(display, ANONYMOUS, context) == 0

    run_kvm(scenario)


def test_spice_shows_the_certificate_of_its_node() -> None:
    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        given = {"spice_bind": ADDRESS, "spice_use_tls": True}
        with pytest.raises(NodeFailure, match=r"root says in .* \(“spice /DIRECTORY”\)"):
            await display_of(rig, given, 11_517)
        allow(rig, "spice", viewer.directory)
        display = await display_of(rig, given, 11_517)
        assert display == f"{ADDRESS}:11517"
        _, writer = await asyncio.open_connection(
            ADDRESS, 11_517, ssl=viewer.context(), server_hostname=ADDRESS
        )
        writer.close()
        assert nothing_is_lent(rig)

    run_kvm(scenario)


def test_a_key_that_others_can_read_is_shown_to_nobody() -> None:
    async def scenario(rig: KvmRig) -> None:
        viewer = Viewer(rig.root)
        allow(rig, "secret", viewer.directory)
        given = {"vnc_bind_address": ADDRESS, "vnc_tls": True,
                 "vnc_x509_path": str(viewer.directory)}  # fmt: skip
        (viewer.directory / "server-key.pem").chmod(0o644)
        with pytest.raises(NodeFailure, match=r"server-key.pem holds a secret, .*chmod 600"):
            await display_of(rig, given)
        (viewer.directory / "server-key.pem").unlink()
        with pytest.raises(NodeFailure, match=r"cannot open .*server-key.pem: No such file"):
            await display_of(rig, given)

    run_kvm(scenario)
