"""What a whole node does when it is called, without sockets and in virtual time."""

import asyncio

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure, NotFound
from common.messages import from_json, to_builtins
from common.model.pool import Pool
from common.names import CallId, Epoch, MiB
from common.noderpc.facts import StorageReport
from common.rpc.envelope import Envelope
from noded.handlers.facts import STORAGE_PATIENCE_S, UNTIL_POWER_OFF_S
from noded.powercycle import PowerSwitch
from tests.support.clock import simulate
from tests.support.disks import directory
from tests.unit.noded.whole_node import NOW, WEB1, Rig


def test_a_node_joins_and_remembers_it(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            assert (await rig.call("facts.facts", dict))["name"] == "beta"
        async with rig.running():
            assert (await rig.call("facts.facts", dict))["name"] == "beta"

    simulate(scenario())


def test_a_token_is_used_once(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(Conflict, match=r"in the cluster one\.example\.com already"):
                await rig.call("join.request", caller=None, node="beta", proof="")

    simulate(scenario())


def test_a_name_that_is_none_is_refused(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            with pytest.raises(InvalidRequest, match="no node name"):
                await rig.join("Beta_!")

    simulate(scenario())


def test_what_nobody_declared_is_not_found(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            for name in ("facts.reboot", "start.", "facts.__init__", "."):
                with pytest.raises(NotFound, match="knows no call"):
                    await rig.call(name)

    simulate(scenario())


def test_an_order_goes_on_when_its_caller_hangs_up(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            starting = asyncio.ensure_future(
                rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            )
            await asyncio.sleep(0.01)
            starting.cancel()
            await asyncio.sleep(100)
            assert len(await rig.call("instances.guests", list)) == 1

    simulate(scenario())


def test_promised_memory_counts_and_guests_keep_a_node_from_leaving(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            before = await rig.call("facts.facts", dict)
            assert before["memory_total"] == before["memory_free"] + before["memory_dom0"]
            assert before["hypervisors"] == {"kvm": "1.0"}
            assert before["clock"] == NOW
            await rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            after = await rig.call("facts.facts", dict)
            assert after["memory_free"] == before["memory_free"] - WEB1.memory
            assert after["memory_dom0"] == before["memory_dom0"]
            with pytest.raises(Conflict, match="Guests are still on this node: web1"):
                await rig.call("identity.leave")
            await rig.call("instances.ensure_gone", instance=WEB1.id)
            await rig.call("identity.leave")
            assert rig.node.cluster is None
            await rig.join("gamma")

    simulate(scenario())


def test_storage_that_hangs_does_not_hide_the_facts_and_is_asked_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def hang(pool: Pool) -> StorageReport:
        asked.append(pool.name)
        if pool.name == "/srv/shared":
            await asyncio.sleep(10_000)
        return StorageReport(pool=pool, total=MiB(9), free=MiB(5), usable=True)

    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            monkeypatch.setattr(rig.storage, "space", hang)
            loop = asyncio.get_running_loop()
            for attempt in (1, 2):
                pools = [directory("/srv/local"), directory("/srv/shared")]
                facts = await rig.call("facts.facts", dict, storage=pools)
                assert loop.time() == attempt * STORAGE_PATIENCE_S
                local, shared = facts["storage"]
                assert local["usable"]
                assert "did not answer within 5 s" in shared["problem"]
                assert not shared["usable"]
            assert asked.count("/srv/shared") == 1

    simulate(scenario())


def test_powercycle_answers_first_and_a_node_without_a_switch_says_why(rig: Rig) -> None:
    class Switch(PowerSwitch):
        pressed_at: float | None = None

        def check(self) -> None:
            pass

        def cycle(self) -> None:
            self.pressed_at = asyncio.get_running_loop().time()

    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(NodeFailure, match="It has no switch"):
                await rig.call("facts.powercycle")
        rig.power = switch = Switch()
        async with rig.running():
            await rig.call("facts.powercycle")
            assert switch.pressed_at is None
            await asyncio.sleep(1)
            assert switch.pressed_at == UNTIL_POWER_OFF_S

    simulate(scenario())


def test_broken_json_in_an_answer_never_happens(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            envelope = Envelope(epoch=Epoch(0), call=CallId("a"))
            for body in (b"", b"\xff", b"{", b"[]", b"null", b'"x"'):
                reply = await rig.node.call("join", "request", envelope, None, body)
                assert reply.status == 400
                from_json(reply.body, dict, what="the answer")

    simulate(scenario())
