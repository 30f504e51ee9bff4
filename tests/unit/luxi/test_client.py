import json
import os
import socket
import tempfile
from pathlib import Path
from threading import Event

import pytest

from common.errors import GntError, NotFound, Unreachable
from common.luxi.client import Client, ConnectionLost, NoCoordinator
from tests.unit.luxi.server import listening, reading, saying


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "luxi.sock"


def call(path: Path, answer_s: float = 5.0) -> object:
    with Client(str(path)) as client:
        return client.call("Method", 1, ["a"], answer_s=answer_s)


def test_calls_go_over_one_connection_in_order(path: Path) -> None:
    requests = []

    def talk(connection: socket.socket) -> None:
        for number in (1, 2):
            requests.append(json.loads(reading(connection)))
            connection.sendall(b'{"success": true, "result": %d}\x03' % number)

    with listening(path, talk), Client(str(path)) as client:
        assert [client.call("One", "x"), client.call("Two")] == [1, 2]
    assert requests == [{"method": "One", "args": ["x"]}, {"method": "Two", "args": []}]


def test_an_answer_may_come_in_pieces(path: Path) -> None:
    with listening(path, saying(b'{"succ', b'ess": true, "resu', b'lt": "x"}', b"\x03")):
        assert call(path) == "x"


def test_an_error_is_raised_as_it_was(path: Path) -> None:
    error = b'"error": {"code": "not-found", "message": "No.", "detail": {"node": "x"}}'
    with (
        listening(path, saying(b'{"success": false, "result": [], ' + error + b"}\x03")),
        pytest.raises(NotFound, match="No") as caught,
    ):
        call(path)
    assert caught.value.detail == {"node": "x"}


def test_an_error_of_ganeti_is_understood(path: Path) -> None:
    answer = b'{"success": false, "result": ["OpPrereqError", ["No.", "unknown_entity"]]}\x03'
    with listening(path, saying(answer)), pytest.raises(NotFound, match="No"):
        call(path)


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense", b"[]", b'{"result": 1}', b"\xff\xfe", b"[" * 9999]
)
def test_garbage_is_no_answer(path: Path, answer: bytes) -> None:
    with listening(path, saying(answer + b"\x03")), pytest.raises(ConnectionLost, match="luxi"):
        call(path)


@pytest.mark.parametrize("answer", [b"", b'{"success": tr'])
def test_hanging_up_is_told(path: Path, answer: bytes) -> None:
    with listening(path, saying(answer)), pytest.raises(ConnectionLost, match="hung up"):
        call(path)


def test_the_next_call_connects_anew(path: Path) -> None:
    with listening(path, saying(b""), saying(b'{"success": true, "result": 2}\x03')):
        client = Client(str(path))
        with pytest.raises(ConnectionLost):
            client.call("X")
        assert client.call("X") == 2
        client.close()


def test_silence_ends_after_a_while(path: Path) -> None:
    def talk(connection: socket.socket) -> None:
        reading(connection)
        connection.recv(1)  # until the client gives up

    with listening(path, talk), pytest.raises(Unreachable, match=r"within 0\.05 seconds"):
        call(path, answer_s=0.05)


def test_slow_answer_is_waited_for_with_a_word(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.luxi.client.SLOW_S", 0.05)
    told = Event()
    slow = []

    def tell(method: str) -> None:
        slow.append(method)
        told.set()

    def talk(connection: socket.socket) -> None:
        reading(connection)
        told.wait()
        connection.sendall(b'{"success": true, "result": "x"}\x03')

    with listening(path, talk), Client(str(path), slow=tell) as client:
        assert client.call("Method") == "x"
    assert slow == ["Method"]


def test_why_there_is_no_coordinator(path: Path) -> None:
    def reason() -> object:
        with pytest.raises(NoCoordinator) as caught:
            call(path)
        return caught.value.detail["reason"]

    assert reason() == "missing"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as forgotten:
        forgotten.bind(str(path))
    assert reason() == "refused"
    with pytest.raises(NoCoordinator, match="too long"):
        call(Path("/" + "x" * 200))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_socket_of_others_is_forbidden() -> None:
    with tempfile.TemporaryDirectory() as open_to_all:  # pytest's own is closed to others
        path = Path(open_to_all) / "luxi.sock"
        path.parent.chmod(0o755)
        with listening(path, saying(b"")):
            path.chmod(0o600)
            os.seteuid(65534)
            try:
                with pytest.raises(NoCoordinator) as caught:
                    call(path)
            finally:
                os.seteuid(0)
    assert caught.value.detail["reason"] == "forbidden"


def test_an_error_with_strange_detail_is_still_an_error(path: Path) -> None:
    told = {"code": "bug", "message": "No.", "detail": {"message": 1, "self": 2}}
    answer = json.dumps({"success": False, "result": "x", "error": told}).encode() + b"\x03"
    with listening(path, saying(answer)), pytest.raises(GntError):
        call(path)
