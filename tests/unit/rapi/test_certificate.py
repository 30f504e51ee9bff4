"""Which certificate clients are shown, and when another one."""

import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509

from common.errors import InvalidRequest
from common.tls.rest import make_pair
from coordinator.rapi.certificate import Pair, ServerCertificate, ensure_certificate


def shown_by(server: ServerCertificate) -> x509.Certificate:
    """Return what a client sees that connects now."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(back, there)
    theirs = server.context.wrap_bio(there, back, server_side=True)
    for end in (ours, theirs, ours):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return x509.load_der_x509_certificate(ours.getpeercert(binary_form=True) or b"")


def name_shown_by(server: ServerCertificate) -> str:
    return shown_by(server).subject.rfc4514_string().removeprefix("CN=")


def test_the_clusters_certificate_goes_before_the_nodes_own_while_it_is_there(
    tmp_path: Path,
) -> None:
    own, cluster = tmp_path / "rapi" / "rapi.pem", tmp_path / "certificate.pem"
    ensure_certificate(own, "alpha")
    server = ServerCertificate([Pair(cluster), Pair(own)])
    assert name_shown_by(server) == "alpha"
    for name in ("greek", "roman"):
        cluster.with_suffix(".new").write_text(make_pair(name, (), time.time()))
        cluster.with_suffix(".new").rename(cluster)
        assert name_shown_by(server) != name, "it is looked at every few seconds only"
        server.refresh()
        assert name_shown_by(server) == name
    cluster.write_text("nonsense")
    server.refresh()
    assert name_shown_by(server) == "roman", "what can be used stays in use"
    cluster.unlink()
    server.refresh()
    assert name_shown_by(server) == "alpha"


def test_a_certificate_that_cannot_be_used_does_not_keep_the_interface_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, cluster = tmp_path / "rapi" / "rapi.pem", tmp_path / "certificate.pem"
    ensure_certificate(own, "alpha")
    cluster.write_text("nonsense")
    server = ServerCertificate([Pair(cluster), Pair(own)])
    assert name_shown_by(server) == "alpha"
    assert f"Cannot use the certificate in {cluster}" in caplog.text
    cluster.with_suffix(".new").write_text(make_pair("greek", (), time.time()))
    cluster.with_suffix(".new").rename(cluster)
    server.refresh()
    assert name_shown_by(server) == "greek"


def test_an_operators_key_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    head, begin, tail = make_pair("mine", (), time.time()).partition("-----BEGIN CERTIFICATE")
    key.write_text(head)
    certificate.write_text(begin + tail)
    assert name_shown_by(ServerCertificate([Pair(certificate, key)])) == "mine"
    with pytest.raises(InvalidRequest, match=r"Cannot use the certificate in .*certificate\.pem"):
        ServerCertificate([Pair(certificate)])


def test_without_any_file_it_says_which_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"Cannot use .*other\.pem: No such file"):
        ServerCertificate([Pair(tmp_path / "one.pem"), Pair(tmp_path / "other.pem")])


def test_names_and_addresses_are_those_under_which_clients_ask(tmp_path: Path) -> None:
    file = tmp_path / "pair.pem"
    long = "a" * 60 + ".example.com"
    file.write_text(make_pair(long, ("alpha", "192.0.2.1", "2001:db8::1", "alpha"), time.time()))
    shown = shown_by(ServerCertificate([Pair(file)]))
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [long, "localhost", "alpha"]
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    assert list(addresses) == ["127.0.0.1", "192.0.2.1", "2001:db8::1"]
