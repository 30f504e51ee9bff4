"""A kind of object is one row of one table, and nothing has to be told of it elsewhere."""

import pytest

from common.errors import NotFound
from common.model.entity import Entity
from common.names import Epoch, NodeName
from coordinator.state.config import Config
from coordinator.state.kinds import Index, Kind
from coordinator.state.loading import load
from coordinator.state.rows import Delete, Put, from_row
from coordinator.state.state import state_of
from coordinator.state.store import Store
from tests.golden.states import versions, written_states
from tests.support.candidates import Candidates, initialise, node, running, stored_rows
from tests.support.clock import simulate
from tests.support.kinds import knowing


class Network(Entity, kw_only=True):
    name: str
    bridge: str = "br0"


ON_BRIDGE = Index[Network](lambda network: (network.bridge,))
NETWORK = Kind[str, Network]("network", Network, named=True, indexes=(ON_BRIDGE,))


def test_a_kind_that_is_added_to_the_table_is_found_copied_and_loaded() -> None:
    lan, dmz = Network(uuid="n1", name="lan"), Network(uuid="n2", name="dmz", bridge="br1")

    async def story() -> None:
        candidates = Candidates("alpha", "beta", "gamma")
        store = Store(await initialise(candidates, ("alpha",)), Epoch(2), candidates.dial(2))
        async with running(store):
            await store.commit([Put(lan), Put(dmz)])
            config = store.state.config
            assert config.get(NETWORK, "lan") == config.find(NETWORK, "n1") == lan
            assert config.sorted(NETWORK) == (dmz, lan)
            assert config.at(NETWORK, ON_BRIDGE, "br1") == (dmz,)
            await store.commit([Delete(dmz)])
            assert store.state.config.sorted(NETWORK) == (lan,)
            assert store.state.config.at(NETWORK, ON_BRIDGE, "br1") == ()
            await store.commit([Put(node("beta"))])  # who becomes a candidate gets a whole copy
        assert candidates.rows("beta") == stored_rows(store.state)
        assert ("network", "n1") in candidates.rows("beta")
        assert (await load(candidates.replicas[NodeName("beta")])).state == store.state

    with knowing(NETWORK):
        simulate(story())


class Rule(Entity, kw_only=True):
    user: str


OF_USER = Index[Rule](lambda rule: (rule.user,))
RULE = Kind[str, Rule]("rule", Rule, indexes=(OF_USER,))


def test_a_kind_without_names_is_found_by_key_and_by_its_indexes() -> None:
    rules = [Rule(uuid=uuid, user="alice") for uuid in ("r3", "r1", "r2")]
    with knowing(RULE):
        config = Config().apply(map(Put, rules))
        in_order = tuple(sorted(rules, key=lambda rule: rule.uuid))
        assert config.sorted(RULE) == config.at(RULE, OF_USER, "alice") == in_order
        assert config.get(RULE, "r1") == in_order[0]
        with pytest.raises(NotFound, match=r"There is no rule “r9” in this cluster\.$"):
            config.get(RULE, "r9")


def test_every_row_of_a_state_is_in_a_whole_copy_of_it() -> None:
    for version in versions():
        for written in written_states(version, "cluster.json"):
            state = state_of(map(from_row, written.loaded), written.stamp)
            assert stored_rows(state).keys() == {(row.kind, row.id) for row in written.loaded}
