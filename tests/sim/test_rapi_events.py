"""What changes is told to whoever listens to the REST interface."""

from pathlib import Path
from typing import Any

import pytest

from tests.sim.settings import create
from tests.support.cluster import SimulatedCluster
from tests.support.rest import Rest, with_rest


def test_whoever_listens_is_told_what_changes_and_need_not_ask(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        async with rest.listening("?kinds=instance,job") as listener:
            assert "Content-Type: text/event-stream" in listener.head
            await cluster.run(create("web1", "beta"))
            seen: list[tuple[str, Any]] = []
            while not seen or seen[-1][1].get("object", {}).get("status") != "success":
                seen.append(await listener.next())
            created = [told for kind, told in seen if kind == "instance"][-1]
            assert created["object"]["status"] == "running"
            assert created["uri"] == "/2/instances/web1"
            assert {kind for kind, _ in seen} == {"instance", "job"}
            last = listener.last_id
        await rest.job("DELETE", "/2/instances/web1")
        async with rest.listening(Last_Event_ID=last) as listener:
            seen = [await listener.next()]
            while not (seen[-1][0] == "instance" and seen[-1][1]["is_gone"]):
                seen.append(await listener.next())
            assert "reset" not in {kind for kind, _ in seen}

    with_rest(tmp_path, scenario)


def test_whoever_has_missed_events_is_told_to_read_anew(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        async with rest.listening(Last_Event_ID="elsewhere-7") as listener:
            assert (await listener.next())[0] == "reset"
            await cluster.crash_master()
            await rest.until_whole(is_whole=False)
            assert (await rest.ask("GET", "/2/nodes")).status == 502
            await cluster.start_master("alpha")
            await rest.until_whole()
            assert (await listener.next())[0] == "reset"
            assert (await rest.ask("GET", "/2/nodes")).status == 200
        assert (await rest.ask("GET", "/2/events?kinds=colour")).status == 400
        assert (await rest.ask("GET", "/2/events", user=None)).status == 401

    with_rest(tmp_path, scenario, nodes=2)


def test_a_listener_that_leaves_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        async with rest.listening():
            pass
        for number in range(3):
            await rest.job("PUT", f"/2/tags?tag=a{number}")

    with_rest(tmp_path, scenario, nodes=1)
    assert "unexpectedly" not in caplog.text
