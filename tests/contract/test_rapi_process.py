"""``gantry-rapi`` as a process: TLS, its files, its clients, and where the master is."""

import asyncio
import base64
import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest
from common.exposition import MEDIA
from common.luxi.answers import Request
from coordinator.master.luxi_server import LuxiServer
from coordinator.rapi.certificate import ensure_certificate
from tests.support.rapi import WRITER, RapiProcess, rapi_process
from tests.support.rest import Answer, parse_answer

PATIENCE_S = 20.0


class Pretender:
    """A coordinator that knows of one cluster, and takes every job."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    async def __call__(self, request: Request) -> Any:
        match request.method:
            case "Subscribe":
                return 1
            case "NextChanges":
                if self.jobs == ["told"]:
                    await asyncio.sleep(30)
                self.jobs = ["told"]
                row = {"name": "c1", "tags": ["x" * 100] * 100_000, "padding": "y"}
                return {"rows": [["cluster", "cluster", row]], "more": False, "age": 0.0}
            case _:
                raise InvalidRequest("no")


def ask(
    rapi: RapiProcess, path: str, method: str = "GET", user: tuple[str, str] | None = None
) -> Answer:
    told = ""
    if user is not None:
        told = f"Authorization: Basic {base64.b64encode(':'.join(user).encode()).decode()}\r\n"
    with connection(rapi) as secure:
        secure.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: rapi\r\nConnection: close\r\n{told}\r\n".encode()
        )
        data = b""
        while part := secure.recv(65536):
            data += part
    return parse_answer(data)


def connection(rapi: RapiProcess) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", rapi.port), timeout=PATIENCE_S)
    return context.wrap_socket(plain)


@pytest.fixture(scope="module")
def rapi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RapiProcess]:
    """One without a coordinator."""
    folder = tmp_path_factory.mktemp("rapi")
    with rapi_process(folder, folder / "luxi") as process:
        yield process


def test_makes_a_certificate_that_only_it_may_read(rapi: RapiProcess) -> None:
    assert rapi.paths.rapi_certificate.stat().st_mode & 0o777 == 0o600
    assert ask(rapi, "/version").text == b"2"


def test_says_where_the_master_is_and_that_nobody_listens_here(rapi: RapiProcess) -> None:
    answer = ask(rapi, "/2/nodes")
    assert answer.status == 502
    rapi.paths.ssconf.mkdir(parents=True)
    master = rapi.paths.ssconf / "master_node"
    master.write_text("gamma.example.com\n")
    answer = ask(rapi, "/2/nodes")
    assert answer.status == 503
    assert answer.value["explain"] == "The master is gamma.example.com; ask there."
    master.write_text(f"{socket.gethostname()}\n")
    assert ask(rapi, "/2/nodes").status == 502
    assert ask(rapi, "/2/features").status == 200


def test_metrics_are_told_where_no_master_is_too(rapi: RapiProcess) -> None:
    answer = ask(rapi, "/metrics")
    assert (answer.status, answer.headers["Content-Type"]) == (200, MEDIA)
    assert b"\ngantry_rapi_is_up_to_date 0\n" in answer.text
    assert b"gantry_cluster_" not in answer.text
    assert b"\nprocess_resident_memory_bytes " in answer.text


def test_users_are_read_again_when_their_file_has_changed(rapi: RapiProcess) -> None:
    assert ask(rapi, "/2/tags?tag=a", "PUT", WRITER).status in {502, 503}
    assert ask(rapi, "/2/tags?tag=a", "PUT", ("new", "word")).status == 401
    rapi.paths.rapi_users.write_text("new word write\n")
    assert ask(rapi, "/2/tags?tag=a", "PUT", ("new", "word")).status in {502, 503}
    assert ask(rapi, "/2/tags?tag=a", "PUT", WRITER).status == 401


def test_access_log_tells_of_each_request(rapi: RapiProcess) -> None:
    ask(rapi, "/2/nowhere?a=b")
    last = rapi.paths.access_log.read_text().splitlines()[-1]
    assert '"GET /2/nowhere?a=b HTTP/1.1" 404 ' in last
    assert last.startswith("127.0.0.1 - - [")


def test_a_new_certificate_is_used_without_a_restart(rapi: RapiProcess) -> None:
    def shown() -> bytes | None:
        with connection(rapi) as secure:
            return secure.getpeercert(binary_form=True)

    before = shown()
    other = rapi.paths.rapi_certificate.with_name("other.pem")
    ensure_certificate(other, "other.example.com")
    other.rename(rapi.paths.rapi_certificate)
    until = time.monotonic() + PATIENCE_S
    while shown() == before:
        assert time.monotonic() < until


def test_a_body_in_chunks_is_taken_and_so_is_what_comes_behind_it(rapi: RapiProcess) -> None:
    head = b"GET /2/info HTTP/1.1\r\nHost: rapi\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/json; charset=utf-8\r\n\r\n"
    with connection(rapi) as secure:
        for text, is_right in ((b"{}", True), (b"[", False), (b'{"a": 1}', True)):
            for piece in (head, b"%x\r\n%b\r\n" % (len(text), text), b"0\r\n\r\n"):
                secure.sendall(piece)
            answer = parse_answer(secure.recv(4096))
            assert answer.status in ({502, 503} if is_right else {400})
            assert (b"parse JSON" in answer.text) != is_right
        secure.sendall(b"GET /version HTTP/1.1\r\nHost: rapi\r\n\r\n")
        assert parse_answer(secure.recv(4096)).text == b"2"


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked_at_once(rapi: RapiProcess) -> None:
    with connection(rapi) as secure:
        secure.sendall(
            b"PUT /2/modify HTTP/1.1\r\nHost: rapi\r\nExpect: 100-continue\r\n"
            b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        )
        assert secure.recv(4096).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")


def test_a_path_may_end_with_a_slash(rapi: RapiProcess) -> None:
    for path in ("/version", "/version/", "/", "//"):
        assert ask(rapi, path).status == 200
    assert ask(rapi, "/version//").status == 404


@pytest.mark.parametrize(
    "request_text",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"POST /2/instances HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"POST /2/instances HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /2/instances HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 0\r\n\r\n0\r\n\r\n",
        b"POST /2/instances HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n40001\r\n",
        b"POST /2/instances HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"GET /version HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x00\r\n\r\n",
    ],
)
def test_bad_requests_are_refused_in_json(rapi: RapiProcess, request_text: bytes) -> None:
    with connection(rapi) as secure:
        secure.sendall(request_text)
        answer = parse_answer(secure.recv(4096))
    assert answer.status == 400
    assert answer.value["code"] == 400


def test_strangers_who_do_not_shake_hands_keep_nobody_out(rapi: RapiProcess) -> None:
    hello = bytes.fromhex("1603010200") + b"\x01" * 100  # and no more of it
    silent = [socket.create_connection(("127.0.0.1", rapi.port)) for _ in range(400)]
    try:
        for each in silent[::2]:
            each.sendall(hello)
        assert ask(rapi, "/version").text == b"2"
    finally:
        for each in silent:
            each.close()


def test_it_ends_although_somebody_listens(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = LuxiServer(tmp_path / "luxi")
        await server.start(Pretender())
        try:
            await asyncio.to_thread(listened_to)
        finally:
            await server.stop()

    def listened_to() -> None:
        with rapi_process(tmp_path / "root", tmp_path / "luxi") as rapi:
            until = time.monotonic() + PATIENCE_S
            while ask(rapi, "/2/tags").status != 200:
                assert time.monotonic() < until
            secure = connection(rapi)
            login = base64.b64encode(":".join(WRITER).encode()).decode()
            head = f"Host: rapi\r\nAuthorization: Basic {login}\r\n"
            secure.sendall(f"GET /2/events HTTP/1.1\r\n{head}\r\n".encode())
            assert b" 200 OK" in secure.recv(65536)
            os.kill(rapi.pid, signal.SIGTERM)
            until = time.monotonic() + PATIENCE_S
            while secure.recv(65536):  # until it hangs up, well before it would say anything
                pass
            secure.close()
            while not has_ended(rapi.pid):  # a second signal would kill it on its way out
                assert time.monotonic() < until

    asyncio.run(scenario())


def has_ended(pid: int) -> bool:
    """Tell whether a child has, though nobody has asked yet how."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def test_a_client_that_takes_no_answer_costs_the_others_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = LuxiServer(tmp_path / "luxi")
        await server.start(Pretender())
        try:
            await asyncio.to_thread(besieged)
        finally:
            await server.stop()

    def besieged() -> None:
        with rapi_process(tmp_path / "root", tmp_path / "luxi") as rapi:
            until = time.monotonic() + PATIENCE_S
            while (answer := ask(rapi, "/2/tags")).status != 200:
                assert time.monotonic() < until
            assert len(answer.text) > 10_000_000
            assert b'gantry_cluster_info{cluster="c1",master=""} 1' in ask(rapi, "/metrics").text
            slow = [connection(rapi) for _ in range(20)]
            for each in slow:
                each.sendall(b"GET /2/tags HTTP/1.1\r\nHost: rapi\r\n\r\n")
            assert ask(rapi, "/version").status == 200
            status = Path(f"/proc/{rapi.pid}/status").read_text()
            memory = int(status.split("VmRSS:")[1].split()[0]) // 1024
            assert json.loads(ask(rapi, "/2/tags").text)
            for each in slow:
                each.close()
            assert memory < 400

    asyncio.run(scenario())
