"""A remote API over HTTPS that tells of a given cluster, for programs of both kinds to ask."""

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.diff.luxi_server import Answering


def resources(answering: Answering) -> dict[str, Any]:
    """What the API answers, by path; fields as Ganeti's."""
    return {
        "/2/info": answering.answer("QueryClusterInfo", []),
        "/2/groups?bulk=1": [_plain(row) for row in answering._groups()],
        "/2/nodes?bulk=1": [_node(_plain(row)) for row in answering._nodes()],
        "/2/instances?bulk=1": [_instance(_plain(row)) for row in answering._instances()],
    }


def _plain(row: dict[str, list[Any]]) -> dict[str, Any]:
    return {key: value if status == 0 else None for key, (status, value) in row.items()}


def _gathered(row: dict[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields whose names begin so, and the others."""
    some = {k.removeprefix(prefix): v for k, v in row.items() if k.startswith(prefix)}
    return some, {k: v for k, v in row.items() if not k.startswith(prefix)}


def _node(row: dict[str, Any]) -> dict[str, Any]:
    parameters, others = _gathered(row, "ndp/")
    return others | {"ndparams": parameters}


def _instance(row: dict[str, Any]) -> dict[str, Any]:
    parameters, others = _gathered(row, "be/")
    del others["forthcoming"]  # it has no such field
    return others | {"beparams": parameters | {"maxmem": parameters["memory"]}}


def write_certificate(path: Path) -> None:
    """A key and a certificate signed with it, for this machine, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )


class Handler(BaseHTTPRequestHandler):
    """Answers GETs; a test may replace ``answers`` (path: JSON value, text, or status)."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, Any]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        told = self.answers.get(self.path, 404)
        status = told if isinstance(told, int) else 200
        body = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(certificate: Path, answers: dict[str, Any]) -> Iterator[tuple[str, type[Handler]]]:
    """Listen on this machine; yields the URL, and what was asked."""

    class Here(Handler):
        asked: list[tuple[str, str | None]] = []

    Here.answers = answers
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Here) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}", Here
        finally:
            server.shutdown()
            thread.join(10)
