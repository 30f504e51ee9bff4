"""Who may do what over the REST interface: operators, owners, readers and nobody."""

from pathlib import Path
from typing import Any

from tests.sim.settings import create
from tests.support.cluster import SimulatedCluster
from tests.support.rapi import READER
from tests.support.rest import Rest, with_rest

ROLES = (
    "writer secret write\nops word operator\nshop word owner=shop\nreader secret read\n"
    "nobody word\nlate word write,expires=2001-01-01\n"
)
OPS, SHOP, NOBODY, LATE = (
    (name, "word") for name in ("ops", "shop", "nobody", "late")
)  # fmt: skip
EXPORT = {"destination": "beta", "mode": "local", "remove_instance": False}
MAY: list[tuple[str, str, Any, tuple[str, ...]]] = [
    ("GET", "/2/nodes", None, ("ops", "reader")),
    ("GET", "/2/instances/web1", None, ("ops", "reader", "shop")),
    ("GET", "/2/instances/web2", None, ("ops", "reader")),
    ("PUT", "/2/instances/web1/shutdown", None, ("ops", "shop")),
    ("PUT", "/2/instances/web2/shutdown", None, ("ops",)),
    ("PUT", "/2/instances/web1/startup", {"hvparams": {}}, ("ops",)),
    ("PUT", "/2/instances/web1/startup?force=1", None, ("ops",)),
    ("POST", "/2/instances/web1/reboot?type=hard", None, ("ops", "shop")),
    ("POST", "/2/instances/web1/reboot?ignore_secondaries=1", None, ("ops",)),
    ("PUT", "/2/instances/web1/export", EXPORT, ("ops",)),
    ("PUT", "/2/instances/web1/export", EXPORT | {"remove_instance": True}, ()),
    ("PUT", "/2/instances/web1/export", EXPORT | {"mode": "remote"}, ()),
    ("PUT", "/2/instances/web1/failover", {"ignore_consistency": False}, ("ops",)),
    ("PUT", "/2/instances/web1/failover", {"ignore_consistency": True}, ()),
    ("PUT", "/2/instances/web1/tags?tag=x", None, ()),
    ("PUT", "/2/instances/web1/modify", {}, ()),
    ("DELETE", "/2/instances/web1", None, ()),
    ("POST", "/2/groups", {"name": "g"}, ()),
    ("DELETE", "/2/jobs/1", None, ("ops",)),
    ("GET", "/2/jobs/1", None, ("ops", "reader")),
]


def test_everybody_may_what_their_role_says(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        (tmp_path / "users").write_text(ROLES)
        await cluster.run(create("web1", "beta"))
        await cluster.run(create("web2", "beta"))
        await rest.job("PUT", "/2/instances/web1/tags?tag=shop")
        for method, path, body, allowed in MAY:
            for user in (OPS, SHOP, READER, NOBODY):
                status = (await rest.ask(method, path, body, user=user)).status
                assert (status != 403) is (user[0] in allowed), (method, path, body, user, status)
        assert (await rest.ask(method, path, body, user=LATE)).status == 401

    with_rest(tmp_path, scenario, nodes=2, is_closed=True)


def test_owners_follow_their_own_jobs(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        (tmp_path / "users").write_text(ROLES)
        await cluster.run(create("web1", "beta"))
        await rest.job("PUT", "/2/instances/web1/tags?tag=shop")
        number = (await rest.ask("PUT", "/2/instances/web1/shutdown", user=SHOP)).value
        while rest.copy.job(number) is None:
            await rest.copy.changed()
        assert (await rest.ask("GET", f"/2/jobs/{number}", user=SHOP)).status == 200
        assert (await rest.ask("GET", "/2/jobs/1", user=SHOP)).status == 403

    with_rest(tmp_path, scenario, nodes=2, is_closed=True)
