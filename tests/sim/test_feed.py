"""Whoever subscribes is told all there is, and from then on what changes."""

from typing import Any

import msgspec
import pytest

from common.errors import InvalidRequest, NotFound
from common.names import NetworkName
from coordinator.operations.base import Operation
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.network.rename import RenameNetwork
from tests.sim.lan import LAN, in_lan, play
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

FIELDS = {
    "cluster": [],
    "group": ["name", "node_list"],
    "network": ["name", "inst_list", "free_count"],
    "node": ["name", "pinst_list", "mfree"],
    "instance": [
        "name", "uuid", "admin_state", "oper_state", "status", "disk.sizes", "nic.networks.names",
    ],
    "job": ["id", "status"],
}  # fmt: skip


class Copy:
    """What a subscriber knows."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.number = 0
        self.rows: dict[tuple[str, Any], Any] = {}

    async def begin(self, fields: dict[str, list[str]] = FIELDS) -> None:
        self.number = await self._cluster.master.luxi("Subscribe", fields)

    async def hear(self, timeout_s: float = 5.0) -> list[tuple[str, Any]]:
        """Take in what is new; return the kinds and names of the rows that came."""
        heard = []
        while True:
            told = await self._cluster.master.luxi("NextChanges", self.number, timeout_s)
            for kind, key, body in told["rows"]:
                row = None if body is None else msgspec.json.decode(body)
                heard.append((kind, key if row is None else row.get("name", row.get("id"))))
                self.rows.pop((kind, key), None)
                if row is not None:
                    self.rows[kind, key] = row
            if not told["more"]:
                return heard

    def named(self, kind: str) -> dict[Any, Any]:
        return {
            row.get("name", row.get("id")): row for (k, _), row in self.rows.items() if k == kind
        }


def test_all_there_is_comes_first_and_then_only_what_changes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            copy = Copy(cluster)
            await copy.begin()
            heard = await copy.hear()
            assert [kind for kind, _ in heard] == sorted(
                (kind for kind, _ in heard), key=list(FIELDS).index
            )
            assert copy.named("node").keys() == {"alpha", "beta", "gamma"}
            assert copy.named("instance")["web1"]["status"] == "running"
            assert copy.named("node")["beta"]["pinst_list"] == ["web1"]
            assert copy.named("job")[1]["status"] == "success"
            await cluster.run(create("web2", "gamma"))
            while copy.named("job").get(2, {}).get("status") != "success":
                heard = await copy.hear()
                assert ("instance", "web1") not in heard
            assert copy.named("instance")["web2"]["oper_state"] is True
            assert copy.named("node")["gamma"]["pinst_list"] == ["web2"]

    simulate(scenario())


def test_end_of_a_job_is_told_after_what_it_did_is_seen() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            copy = Copy(cluster)
            await copy.begin()
            await copy.hear()
            stop = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1"}
            number = await cluster.master.luxi("SubmitJob", [stop])
            while copy.named("job").get(number, {}).get("status") != "success":
                await copy.hear()
            assert copy.named("instance")["web1"]["status"] == "ADMIN_down"

    simulate(scenario())


def test_a_network_is_told_anew_when_its_addresses_are_given_and_come_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        copy = Copy(cluster)
        await copy.begin()
        await copy.hear()

        async def seen(order: Operation[Any, Any]) -> tuple[list[str], int]:
            number = await cluster.submit(order)
            while copy.named("job").get(number, {}).get("status") != "success":
                await copy.hear()
            told = copy.named("network")["lan"]
            return told["inst_list"], told["free_count"]

        assert await seen(in_lan(ip="pool")) == (["web1"], 253)
        assert await seen(create("web2", "beta")) == (["web1"], 253)
        assert await seen(RemoveInstance(instance_name=WEB1)) == ([], 254)
        renamed = RenameNetwork(network_name=LAN, new_name=NetworkName("office"))
        await cluster.run(in_lan("web3", ip="pool"))
        await cluster.run(renamed)
        while copy.named("instance").get("web3", {}).get("nic.networks.names") != ["office"]:
            await copy.hear()
        assert copy.named("network").keys() == {"office"}

    play(story)


def test_what_is_removed_is_told_as_gone() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            copy = Copy(cluster)
            await copy.begin()
            await copy.hear()
            remove = {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web1"}
            number = await cluster.master.luxi("SubmitJob", [remove])
            while copy.named("job").get(number, {}).get("status") != "success":
                await copy.hear()
            assert not copy.named("instance")
            assert copy.named("node")["beta"]["pinst_list"] == []

    simulate(scenario())


def test_guest_that_dies_is_noticed_without_any_job() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            copy = Copy(cluster)
            await copy.begin()
            await copy.hear()
            await cluster.lose_power("beta")
            while copy.named("instance")["web1"]["status"] == "running":
                await copy.hear(60)
            assert copy.named("instance")["web1"]["status"] == "ERROR_nodedown"

    simulate(scenario())


def test_unknown_subscriptions_and_fields_are_refused() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=1, seed=1) as cluster:
            copy = Copy(cluster)
            with pytest.raises(NotFound):
                await copy.hear()
            for fields in (
                {"secret": ["id"]},
                {"node": ["colour"]},
                {"instance": ["mirror_state"]},
                {"instance": ["disk.allocated"]},
            ):
                with pytest.raises(InvalidRequest):
                    await copy.begin(fields)

    simulate(scenario())


def test_what_a_job_left_behind_is_seen_though_it_was_told_of_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=1) as cluster:
            await cluster.run(create("web1", "beta"))
            copy = Copy(cluster)
            await copy.begin()
            await copy.hear()
            order = {"OP_ID": "OP_INSTANCE_FAILOVER", "instance_name": "web1"}
            order["target_node"] = "gamma"
            monkeypatch.setattr("tests.support.network.LATENCY_S", (0.2, 0.3))
            number = await cluster.master.luxi("SubmitJob", [order])
            seen: set[tuple[str, bool]] = set()
            while copy.named("job").get(number, {}).get("status") != "success":
                await copy.hear(0.3)  # less than a look takes
                job = copy.named("job").get(number, {})
                seen.add((str(job.get("status")), copy.named("node")["gamma"]["pinst_list"] != []))
                assert job.get("status") != "error", job
            assert ("running", True) in seen  # told before its end that the instance has moved
            assert copy.named("instance")["web1"]["status"] == "running"

    simulate(scenario())
