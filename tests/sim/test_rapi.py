"""The REST interface of a cluster: what is asked, what comes back, and what it costs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from common.noderpc.hooks import Ending
from tests.sim.settings import create
from tests.support.cluster import SimulatedCluster
from tests.support.rapi import READER
from tests.support.rest import Rest, with_rest


def test_a_job_is_submitted_followed_and_seen_in_what_is_read_next(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        body = {
            "__version__": 1, "mode": "create", "instance_name": "web1", "nics": [{}],
            "disk_template": "sharedfile", "disks": [{"size": 64}], "os_type": "noop",
            "no_install": True, "pnode": "beta",
        }  # fmt: skip
        job = await rest.job("POST", "/2/instances?reason=new%20shop", body)
        assert job["status"] == "success"
        told = (await rest.ask("GET", "/2/instances/web1")).value
        assert (told["status"], told["pnode"], told["oper_state"]) == ("running", "beta", True)
        by_uuid = await rest.ask("GET", f"/2/instances/{told['uuid']}")
        assert by_uuid.value == told
        (sent,) = job["ops"]
        assert [each[:2] for each in sent["reason"]] == [
            ["gnt:user", "new shop"],
            ["gnt:library:rlib2:instances", ""],
            ["gantry:rapi", "writer from 127.0.0.1"],
        ]
        await rest.job("PUT", "/2/instances/web1/shutdown")
        assert (await rest.ask("GET", "/2/instances/web1")).value["status"] == "ADMIN_down"
        await rest.job("DELETE", "/2/instances/web1")
        assert (await rest.ask("GET", "/2/instances/web1")).status == 404
        assert (await rest.ask("GET", "/2/instances?bulk=1")).value == []
        assert ("/2/instances", "writer", 200) in rest.noted

    with_rest(tmp_path, scenario)


def test_networks_are_listed_and_told_with_their_groups(tmp_path: Path) -> None:
    async def scenario(_: SimulatedCluster, rest: Rest) -> None:
        made = {"network_name": "lan", "network": "198.51.100.0/24", "tags": ["office"]}
        assert (await rest.job("POST", "/2/networks", made))["status"] == "success"
        plugged = {"group_name": "default", "network_mode": "bridged", "network_link": "br0"}
        assert (await rest.job("PUT", "/2/networks/lan/connect", plugged))["status"] == "success"
        told = (await rest.ask("GET", "/2/networks/lan")).value
        assert told["group_list"] == [["default", "bridged", "br0", ""]]
        assert (told["network"], told["free_count"], told["inst_list"]) == (
            "198.51.100.0/24",
            254,
            [],
        )
        listed = (await rest.ask("GET", "/2/networks")).value
        assert listed == [{"name": "lan", "uri": "/2/networks/lan"}]
        assert (await rest.ask("GET", "/2/networks?bulk=1")).value == [told]
        assert (await rest.ask("GET", "/2/networks/lan/tags")).value == ["office"]
        assert (await rest.ask("GET", "/2/networks/wan")).status == 404

    with_rest(tmp_path, scenario, nodes=1)


def test_reading_costs_the_coordinator_nothing(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        await cluster.run(create("web1", "beta"))
        while (await rest.ask("GET", "/2/instances")).value == []:
            await rest.copy.changed()
        rest.luxi.asked.clear()
        for path in (
            "/version", "/2/info", "/2/nodes?bulk=1", "/2/instances?bulk=1", "/2/instances/web1",
            "/2/groups?bulk=1", "/2/jobs?bulk=1", "/2/jobs/1", "/2/tags", "/2/nodes/beta/role",
            "/2/networks?bulk=1",
        ):  # fmt: skip
            assert (await rest.ask("GET", path, user=None)).status == 200, path
        assert {*rest.luxi.asked} <= {"NextChanges"}

    with_rest(tmp_path, scenario)


def test_a_job_is_waited_for_without_asking_again_and_again(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        (number,) = await cluster.master.luxi(
            "SubmitManyJobs", [[{"OP_ID": "OP_TEST_DELAY", "duration": 25}]]
        )
        path, fields = f"/2/jobs/{number[1]}/wait", ["status"]
        loop = asyncio.get_running_loop()
        first = (await rest.ask("GET", path, {"fields": fields})).value
        assert first["job_info"] in (["queued"], ["waiting"], ["running"])
        while first["job_info"] != ["running"]:
            first = (
                await rest.ask(
                    "GET", path, {"fields": fields, "previous_job_info": first["job_info"]}
                )
            ).value
        serial = max((each[0] for each in first["log_entries"]), default=0)
        body = {"fields": fields, "previous_job_info": ["running"], "previous_log_serial": serial}
        begun_s = loop.time()
        told = (await rest.ask("GET", path, body)).value
        while told is not None and told["job_info"] == ["running"]:
            body["previous_log_serial"] = told["log_entries"][-1][0]
            begun_s = loop.time()
            told = (await rest.ask("GET", path, body)).value
        assert told is None
        assert loop.time() - begun_s == pytest.approx(10, abs=0.5)
        while told is None:
            told = (await rest.ask("GET", path, body)).value
        assert told["job_info"] == ["success"]
        assert rest.luxi.asked.count("WaitForJobChange") < 20

    with_rest(tmp_path, scenario, nodes=1)


@pytest.mark.parametrize(
    ("method", "path", "body", "user", "status"),
    [
        ("PUT", "/2/tags?tag=x", None, None, 401),
        ("PUT", "/2/tags?tag=x", None, ("writer", "wrong"), 401),
        ("GET", "/2/nodes", None, ("writer", "wrong"), 401),
        ("PUT", "/2/tags?tag=x", None, READER, 403),
        ("GET", "/2/query/node?fields=name", None, READER, 200),
        ("GET", "/2/query/node", None, READER, 400),
        ("GET", "/2/query/secret?fields=name", None, READER, 404),
        ("GET", "/2/nodes/nobody", None, None, 404),
        ("GET", "/2/jobs/4711", None, None, 404),
        ("GET", "/2/jobs/4711/wait", {"fields": ["status"]}, ("writer", "secret"), 404),
        ("GET", "/2/jobs/1/wait", {}, ("writer", "secret"), 400),
        ("GET", "/2/jobs/1/wait", {"fields": 1}, ("writer", "secret"), 400),
        ("DELETE", "/2/jobs/4711", None, ("writer", "secret"), 404),
        ("POST", "/2/nodes", None, None, 501),
        ("PUT", "/2/instances/web1/startup", {"colour": "red"}, ("writer", "secret"), 400),
        ("POST", "/2/groups", [], ("writer", "secret"), 400),
        ("GET", "/2/nodes?bulk=many", None, None, 400),
    ],
)
def test_refusals_have_the_status_and_the_form_of_ganetis(
    tmp_path: Path, method: str, path: str, body: Any, user: tuple[str, str] | None, status: int
) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        answer = await rest.ask(method, path, body, user=user)
        assert answer.status == status, answer.text
        if status != 200:
            assert answer.value.keys() == {"code", "message", "explain"}
            assert answer.value["code"] == status
        if status == 401:
            assert answer.headers["WWW-Authenticate"] == 'Basic realm="Ganeti Remote API"'

    with_rest(tmp_path, scenario, nodes=1)


def test_what_a_client_has_already_is_not_sent_again(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        for path in ("/2/nodes?bulk=1", "/2/nodes/beta", "/2/groups", "/2/info", "/2/features"):
            first = await rest.ask("GET", path)
            version = first.headers["ETag"]
            again = await rest.ask("GET", path, If_None_Match=f'"other", {version}')
            assert (again.status, again.text) == (304, b""), path
            assert again.headers["ETag"] == version
            assert (await rest.ask("GET", path, If_None_Match='"other"')).status == 200
        version = (await rest.ask("GET", "/2/nodes/beta")).headers["ETag"]
        await rest.job("PUT", "/2/nodes/beta/tags?tag=fast")
        again = await rest.ask("GET", "/2/nodes/beta", If_None_Match=version)
        assert again.value["tags"] == ["fast"]

    with_rest(tmp_path, scenario, nodes=2)


def test_what_has_changed_since_it_was_read_is_not_changed_unseen(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        version = (await rest.ask("GET", "/2/nodes/beta")).headers["ETag"]
        path = "/2/nodes/beta/tags?tag=fast"
        told = await rest.ask("PUT", path, If_Match=version, Prefer="respond-async")
        assert (told.status, told.headers["Location"]) == (202, f"/2/jobs/{told.value}")
        while (await rest.ask("GET", "/2/nodes/beta/tags")).value != ["fast"]:
            await rest.copy.changed()
        assert (await rest.ask("PUT", path, If_Match=version)).status == 412
        assert (await rest.ask("DELETE", "/2/nodes/none/tags?tag=a", If_Match="*")).status == 412
        assert (await rest.ask("PUT", path, If_Match="*")).status == 200

    with_rest(tmp_path, scenario, nodes=2)


def test_who_takes_no_json_is_told_that_there_is_nothing_else(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        assert (await rest.ask("GET", "/2/nodes", Accept="text/xml")).status == 406
        assert (await rest.ask("GET", "/2/nodes", Accept="application/json;q=0")).status == 406
        assert (await rest.ask("GET", "/2/nodes", Accept="text/html, */*;q=0.1")).status == 200

    with_rest(tmp_path, scenario, nodes=1)


def test_tools_get_a_description_and_browsers_a_page(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        told = await rest.ask("GET", "/openapi.json", user=None)
        assert told.value["openapi"].startswith("3.1")
        again = await rest.ask("GET", "/openapi.json", If_None_Match=told.headers["ETag"])
        assert again.status == 304
        page = await rest.ask("GET", "/", user=None, Accept="text/html,*/*;q=0.8")
        assert page.headers["Content-Type"] == "text/html"
        assert (await rest.ask("GET", "/", user=None)).value is None

    with_rest(tmp_path, scenario, nodes=1)


def test_a_portal_reserves_names_and_makes_an_instance_while_names_are_served(
    tmp_path: Path,
) -> None:
    """As one does that has to know the cluster before there can be a host name."""

    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        dns = cluster.machines["alpha"].hooks
        for directory in ("instance-add-post.d", "instance-rename-post.d"):
            dns.scripts[directory] = {"50-dns": Ending.DONE}
        job = await rest.job("POST", "/2/instances", {"__version__": 1, "forthcoming": True})
        (uuid,) = job["opresult"]
        told = (await rest.ask("GET", f"/2/instances/{uuid}")).value
        assert (told["name"], told["uuid"], told["status"]) == (uuid, uuid, "ADMIN_down")
        change = {
            "disk_template": "plain", "disks": [["add", -1, {"size": 64}]],
            "nics": [["add", -1, {}]], "beparams": {"memory": 256}, "os_name": "noop",
        }  # fmt: skip
        for path, body in (("modify", change), ("rename", {"new_name": "web1.example.com"})):
            job = await rest.job("PUT", f"/2/instances/{uuid}/{path}", body)
            assert job["status"] == "success", job["opresult"]
        answer = await rest.ask("GET", "/2/query/instance?fields=name,forthcoming")
        assert answer.value["data"] == [[[0, "web1.example.com"], [0, True]]]
        job = await rest.job("POST", f"/2/instances/{uuid}/create", {"no_install": True})
        assert job["status"] == "success", job["opresult"]
        told = (await rest.ask("GET", "/2/instances/web1.example.com")).value
        assert (told["status"], told["uuid"], told["disk.sizes"]) == ("running", uuid, [64])
        steps = [
            (told["GANETI_INSTANCE_UUID"], told["GANETI_POST_INSTANCE_NAME"], *map(told.get, SAID))
            for _, _, told in dns.runs
        ]
        name = "web1.example.com"
        assert steps == [
            (uuid, uuid, "True", "False"), (uuid, name, None, None), (uuid, name, "False", "True"),
        ]  # fmt: skip
        refused = await rest.job("POST", f"/2/instances/{uuid}/create")
        assert "is there already" in str(refused["opresult"])

    with_rest(tmp_path, scenario)


SAID = ("GANETI_FORTHCOMING", "GANETI_COMMIT")
