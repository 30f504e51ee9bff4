"""Nodes have links where Ganeti's programs look, if the operator asks for it."""

import asyncio
import os
from pathlib import Path

from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.redist_conf import RedistConf
from coordinator.operations.node.remove import RemoveNode
from tests.sim.settings import GAMMA
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def links_on(cluster: SimulatedCluster, node: str) -> dict[str, Path]:
    paths = cluster.machines[node].paths
    folders = [each for each in (paths.ganetis_sockets, paths.ganetis_data) if each.is_dir()]
    return {link.name: link for folder in folders for link in folder.iterdir()}


async def ask(cluster: SimulatedCluster, *, wanted: bool) -> None:
    await cluster.run(ModifyCluster(ganeti_paths=wanted))
    await asyncio.sleep(2.0)


def test_every_node_has_them_while_they_are_wanted_and_no_longer() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            assert links_on(cluster, "alpha") == {}
            before = os.umask(0o027)
            await ask(cluster, wanted=True)
            os.umask(before)
            for node in ("alpha", "gamma"):
                links, paths = links_on(cluster, node), cluster.machines[node].paths
                assert links["ganeti-master"].readlink() == paths.luxi_socket
                assert links["ganeti-query"].readlink() == paths.luxi_socket
                assert paths.ganetis_sockets.stat().st_mode & 0o777 == 0o755, "all may look there"
                assert links["hmac.key"].readlink() == paths.confd / "hmac.key"
                assert links["ssconf_master_node"].read_text() == "alpha\n"
                assert "ssconf_ganeti_paths" not in links, "Ganeti knows of none"
            await cluster.run(RemoveNode(node_name=GAMMA))
            assert links_on(cluster, "gamma") == {}, "who leaves takes them away"
            await ask(cluster, wanted=False)
            assert links_on(cluster, "alpha") == {}

    simulate(story())


def test_those_that_go_with_the_power_are_back_when_the_node_is() -> None:
    async def story() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await ask(cluster, wanted=True)
            await cluster.machines["gamma"].kill_noded()
            for link in links_on(cluster, "gamma").values():
                link.unlink()
            await cluster.machines["gamma"].start_noded()
            assert {"ganeti-master", "hmac.key"} <= links_on(cluster, "gamma").keys()

    simulate(story())


def test_links_that_people_have_made_themselves_stay_where_none_are_asked_for() -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=1) as cluster:
            alpha = cluster.machines["alpha"]
            link = alpha.paths.ganetis_sockets / "ganeti-master"
            link.parent.mkdir(parents=True)
            link.symlink_to(alpha.paths.luxi_socket)
            await alpha.kill_noded()
            await alpha.start_noded()
            await cluster.run(ModifyCluster(mac_prefix="aa:00:01"))
            await cluster.run(RedistConf())
            assert link.readlink() == alpha.paths.luxi_socket

    simulate(story())


def test_a_node_that_was_away_when_they_were_no_longer_wanted_takes_them_away_when_it_is_back() -> (
    None
):
    async def story() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await ask(cluster, wanted=True)
            await cluster.machines["gamma"].kill_noded()
            await ask(cluster, wanted=False)
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert links_on(cluster, "gamma")
            await cluster.machines["gamma"].start_noded()
            await asyncio.sleep(5.0)
            assert links_on(cluster, "gamma") == {}

    simulate(story())


def test_what_somebody_else_has_put_there_stays() -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=1) as cluster:
            paths = cluster.machines["alpha"].paths
            for folder in (paths.ganetis_sockets, paths.ganetis_data):
                folder.mkdir(parents=True)
            socket, key = paths.ganetis_sockets / "ganeti-master", paths.ganetis_data / "hmac.key"
            socket.write_text("Ganeti's own")
            key.symlink_to("/elsewhere")
            for wanted in (True, False):
                await ask(cluster, wanted=wanted)
                links = links_on(cluster, "alpha")
                assert links["ganeti-master"].read_text() == "Ganeti's own"
                assert links["hmac.key"].readlink() == Path("/elsewhere")
                assert ("ganeti-query" in links) == ("ssconf_master_node" in links) == wanted

    simulate(story())
