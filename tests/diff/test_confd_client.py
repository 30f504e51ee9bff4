"""Ganeti's own confd client asks ours."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.diff.debian_ganeti import ask_libraries, needs_ganeti
from tests.support.confd_process import KEY, ConfdProcess, confd_process
from tests.support.published import SERIAL

pytestmark = needs_ganeti

_CLIENT = """
import json, time
from ganeti import constants as c
from ganeti.confd import HTNodeDrbd
from ganeti.confd import client

QUESTIONS = [
    (c.CONFD_REQ_PING, None),
    (c.CONFD_REQ_CLUSTER_MASTER, None),
    (c.CONFD_REQ_CLUSTER_MASTER, {{c.CONFD_REQQ_FIELDS: [
        c.CONFD_REQFIELD_NAME, c.CONFD_REQFIELD_IP, c.CONFD_REQFIELD_MNODE_PIP]}}),
    (c.CONFD_REQ_NODE_ROLE_BYNAME, "beta"),
    (c.CONFD_REQ_NODE_ROLE_BYNAME, "omega"),
    (c.CONFD_REQ_NODE_PIP_BY_INSTANCE_IP, {{c.CONFD_REQQ_LINK: None,
        c.CONFD_REQQ_IPLIST: ["198.51.100.1", "198.51.100.2"]}}),
    (c.CONFD_REQ_NODE_PIP_LIST, None),
    (c.CONFD_REQ_MC_PIP_LIST, None),
    (c.CONFD_REQ_INSTANCES_IPS_LIST, None),
    (c.CONFD_REQ_NODE_DRBD, "alpha"),
    (c.CONFD_REQ_INSTANCE_DISKS, "web1"),
    (c.CONFD_REQ_CONFIG_QUERY, "/cluster/cluster_name"),
    (c.CONFD_REQ_DATA_COLLECTORS, None),
]

stored = client.StoreResultCallback()
confd = client.ConfdClient("{key}", ["127.0.0.1"], client.ConfdFilterCallback(stored), port={port})

def ask(kind, query):
    request = client.ConfdClientRequest(type=kind, query=query)
    confd.SendRequest(request, async_=False)
    late, sent, received = confd.WaitForReply(request.rsalt, timeout=20)
    assert (late, sent, received) == (False, 1, 1), (kind, late, sent, received)
    reply = stored.GetResponse(request.rsalt)[1].server_reply
    return [reply.status, reply.answer, reply.serial]

told = [ask(*each) for each in QUESTIONS]
assert HTNodeDrbd(told[9][1]), told[9]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def confd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfdProcess]:
    with confd_process(tmp_path_factory.mktemp("confd")) as process:
        process.publish()
        assert any(process.ask(0, patience_s=0.5) for _ in range(40)), "it reads nothing"
        yield process


def test_each_question_that_ganetis_client_knows_is_answered(confd: ConfdProcess) -> None:
    told: list[Any] = ask_libraries(_CLIENT.format(key=KEY, port=confd.port))
    disks = told.pop(10)
    assert disks[1][0]["iv_name"] == "disk/0"
    assert told == [
        [0, 3_000_000, 0],
        [0, "alpha", SERIAL],
        [0, ["alpha", "192.0.2.1", "192.0.2.1"], SERIAL],
        [0, 1, SERIAL],
        [1, 0, 0],
        [0, [[0, "192.0.2.2", SERIAL], [1, 0, 0]], SERIAL],
        [0, ["192.0.2.1", "192.0.2.2", "192.0.2.3"], SERIAL],
        [0, ["192.0.2.1", "192.0.2.2"], SERIAL],
        [0, ["198.51.100.1"], SERIAL],
        [
            0,
            [
                ["alpha", 3, "web2", "disk/0", "primary", "beta"],
                ["alpha", 5, "web1", "disk/0", "secondary", "beta"],
            ],
            SERIAL,
        ],
        [0, "greek", SERIAL],
        [0, {}, SERIAL],
    ]


def test_who_has_another_key_hears_nothing(confd: ConfdProcess) -> None:
    program = f"""
import json
from ganeti import constants as c
from ganeti.confd import client
confd = client.ConfdClient("other", ["127.0.0.1"], lambda _: None, port={confd.port})
request = client.ConfdClientRequest(type=c.CONFD_REQ_PING)
confd.SendRequest(request, async_=False)
print(json.dumps(confd.WaitForReply(request.rsalt, timeout=0.5)))
"""
    assert ask_libraries(program) == [True, 1, 0]
