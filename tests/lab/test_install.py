"""Installed as a stranger would, three nodes joined by token: everything in order."""

import shlex

from deploy.uml.node import Node
from tests.lab.stage import Stage, said, until


def test_three_installed_nodes_form_a_clean_cluster(standing: Stage) -> None:
    names = standing.alpha.run("gnt-node list --no-headers -o name").split()
    assert names[:3] == ["alpha", "beta", "gamma"]
    assert "ERROR" not in standing.verify()


def test_every_unit_of_every_node_is_content(standing: Stage) -> None:
    for node in standing.nodes:
        assert not node.run("systemctl --failed --no-legend").strip()
        assert "memory locked" in node.run("systemctl status gantry-noded")


def test_each_node_has_its_volume_group_and_drbd(standing: Stage) -> None:
    for node in standing.nodes:
        assert node.run("vgs --noheadings -o vg_name").split() == ["gantry"]
        assert "version: 8.4" in said(node, "cat /proc/drbd")


def test_what_programs_ask_runs_without_rights_on_every_candidate(standing: Stage) -> None:
    alpha, beta = standing.alpha, standing.beta
    units = "gantry-rapi gantry-confd gantry-monitor"
    token = alpha.run("gantry add-rest-user --role read-only story").strip()
    try:
        for node in (alpha, beta):
            node.run(f"systemctl enable --now {units}", timeout_s=120)
            assert node.run(f"systemctl is-active {units}").split() == ["active"] * 3
            users = node.run("ps -o user:20= -C gantry-rapi,gantry-confd,gantry-monitor").split()
            assert "root" not in users, users
        until(lambda: "200 " in fetched(alpha, "https://alpha:5080/2/info"), "the copy to be whole")
        assert '[[0,"beta"]]' in fetched(alpha, f"https://alpha:5080/2/query/node{FIELDS}", token)
        assert fetched(alpha, f"https://alpha:5080/2/query/node{FIELDS}", "x.y").startswith("401 ")
        elsewhere = fetched(beta, "https://beta:5080/2/info")
        assert elsewhere.startswith("503 ")
        assert "The master is alpha; ask there." in elsewhere
        assert "gantry_rapi_is_up_to_date 0" in fetched(beta, "https://beta:5080/metrics")
        busy = "gantry_node_processors 1"  # told from the second look on
        until(lambda: busy in fetched(beta, "http://beta:1815/metrics"), "two looks")
        for node in (alpha, beta):
            assert told_master(node) == "alpha"
    finally:
        alpha.run("gantry remove-rest-user story")
        for node in (alpha, beta):
            node.run(f"systemctl disable --now {units}", timeout_s=120)


def test_who_tells_of_volumes_has_them_looked_at_by_who_may(standing: Stage) -> None:
    beta = standing.beta
    told = "http://beta:1815/1/report/storage/lv"
    beta.run("lvcreate --yes --size 4M --name told gantry && systemctl start gantry-monitor")
    try:
        until(lambda: '"name":"told"' in fetched(beta, told).replace(": ", ":"), "the volume")
        assert beta.run("systemctl show --property Result --value gantry-volumes") == "success\n"
    finally:
        beta.run("systemctl stop gantry-monitor && lvremove --yes gantry/told")
    assert not beta.run("systemctl is-active gantry-volumes.timer || true").startswith("active")


FIELDS = "?fields=name"
PYTHON = "/opt/gantry/bin/python"


def fetched(node: Node, address: str, token: str = "") -> str:
    """Return the status and the body of an answer, as somebody on a node gets them."""
    return said(node, f"{PYTHON} -c {shlex.quote(_FETCH)} {address} {token}")


def told_master(node: Node) -> str:
    """Ask confd of a node, as a program that has the key."""
    return node.run(f"{PYTHON} -c {shlex.quote(_ASK_CONFD)}").strip()


_FETCH = """
import ssl, sys, urllib.error, urllib.request
address, *token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
context = ssl._create_unverified_context() if address.startswith("https") else None
try:
    asked = urllib.request.Request(address, headers=headers)
    answer = urllib.request.urlopen(asked, timeout=30, context=context)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())
"""
_ASK_CONFD = """
import hashlib, hmac, json, socket, time
key = open("/var/lib/gantry/confd/hmac.key", "rb").read()
seal = lambda message, salt: hmac.new(key, (salt + message).encode(), hashlib.sha1).hexdigest()
asked = json.dumps({"protocol": 1, "type": 3, "query": None, "rsalt": "story"})
now = str(int(time.time()))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
    mine.settimeout(30)
    question = json.dumps({"msg": asked, "salt": now, "hmac": seal(asked, now)}).encode()
    mine.sendto(b"plj0" + question, ("127.0.0.1", 1814))
    told = json.loads(mine.recv(65536)[4:])
assert told["hmac"] == seal(told["msg"], "story")
print(json.loads(told["msg"])["answer"])
"""
