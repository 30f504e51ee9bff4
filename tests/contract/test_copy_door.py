"""Who is let in to a disk that is offered, over real TLS."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing

import pytest

from common.names import KeyId, NodeName
from common.noderpc.copies import Peer
from common.tls.context import client_context, server_context
from noded.copies.door import Door, Visit, to_member
from noded.copies.frames import Hello, Line
from tests.support.https_node import LOCALHOST, TestCluster

SECRET = "5ec2e7"
LONG_S = 30.0
REFUSED = (EOFError, ConnectionError, ssl.SSLError)  # and no timeout: they are told at once


class Offered:
    """A disk that alpha offers to beta."""

    def __init__(self, cluster: TestCluster, peer: Peer | None = None) -> None:
        self.cluster = cluster
        listener = socket.create_server((LOCALHOST, 0))
        self.port: int = listener.getsockname()[1]
        beta = peer or Peer(name=NodeName("beta"), key=cluster.key("beta"))
        context = server_context(cluster.identity("alpha"))
        self.door = Door(listener, context, to_member(beta, SECRET))
        self.door.open()
        self.lines: list[socket.socket | Line] = []

    def visit(self, node: str, secret: str = SECRET) -> Line:
        context = client_context(self.cluster.identity(node))
        connection = socket.create_connection((LOCALHOST, self.port), timeout=LONG_S)
        secured = context.wrap_socket(connection, server_hostname="alpha")
        self.lines.append(secured)
        line = Line(secured)
        line.say(Hello(secret=secret, have=0, sum=""))
        return line

    def admits(self, *, within_s: float = LONG_S) -> Visit | None:
        visit = self.door.wait(within_s)
        self.lines += [visit.line] if visit else []
        return visit

    def close(self) -> None:
        self.door.close()
        for line in self.lines:
            line.close()


@pytest.fixture
def offered(cluster: TestCluster) -> Iterator[Offered]:
    with closing(Offered(cluster)) as made:
        yield made


def test_the_node_that_it_is_for_is_let_in(offered: Offered) -> None:
    offered.visit("beta")
    visit = offered.admits()
    assert visit is not None
    assert visit.hello.have == 0


@pytest.mark.parametrize(("node", "secret"), [("beta", "guessed"), ("beta", ""), ("gamma", SECRET)])
def test_nobody_else_is(offered: Offered, node: str, secret: str) -> None:
    line = offered.visit(node, secret)
    with pytest.raises(REFUSED):
        line.read(1)
    assert offered.admits(within_s=0) is None


def test_where_no_key_is_known_the_name_counts(cluster: TestCluster) -> None:
    with closing(Offered(cluster, Peer(name=NodeName("beta")))) as offered:
        with pytest.raises(REFUSED):
            offered.visit("gamma").read(1)
        offered.visit("beta")
        assert offered.admits() is not None


def test_another_key_of_the_same_name_is_nobody(cluster: TestCluster) -> None:
    other = Peer(name=NodeName("beta"), key=KeyId("0" * 64))
    with closing(Offered(cluster, other)) as offered:
        with pytest.raises(REFUSED):
            offered.visit("beta").read(1)
        assert offered.admits(within_s=0) is None


def test_strangers_who_say_nothing_keep_nobody_out(offered: Offered) -> None:
    for _ in range(8):
        offered.lines.append(socket.create_connection((LOCALHOST, offered.port)))
    offered.visit("beta")
    assert offered.admits() is not None


def test_a_new_visit_ends_the_one_before(offered: Offered) -> None:
    first = offered.visit("beta")
    assert offered.admits() is not None
    offered.visit("beta")
    assert offered.admits() is not None
    with pytest.raises(REFUSED):
        first.read(1)
