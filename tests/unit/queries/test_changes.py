"""No row that looks otherwise is missing among those that have changed."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Unreachable
from common.model.instance import AdminState
from common.model.job import Job, OperationRecord, Status
from common.model.network import Network
from common.model.stored import Stored
from common.names import InstanceName, JobId, MiB, NetworkId, NetworkName, NodeName
from coordinator.nodes.heard import Heard
from coordinator.queries.changes import Moment, changed_rows, ended_on
from coordinator.queries.feed import ORDER, _columns, _row
from coordinator.queries.live import Live
from coordinator.queries.source import Source
from coordinator.rapi.fields import FIELDS
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State
from tests.unit.queries.cluster import (
    ALPHA,
    BETA,
    CLUSTER,
    GAMMA,
    JOBS,
    RecordedAsker,
    facts,
    guest,
)
from tests.unit.queries.cluster import STATE as WITHOUT_NETWORKS

LAN = Network(
    uuid=NetworkId("aaaaaaaa-0000-4000-8000-000000000001"),
    name=NetworkName("lan"),
    network="192.0.2.0/24",
)
MAIL = WITHOUT_NETWORKS.config.instance("mail")
LAN_NIC = replace(WITHOUT_NETWORKS.config.nics_of(MAIL)[0], network=LAN.uuid, ip="192.0.2.1")
STATE = WITHOUT_NETWORKS.apply([Put(LAN), Put(LAN_NIC)])
COLUMNS = _columns(FIELDS)
GUESTS = {ALPHA.uuid: (guest(1, "db1.example.com"),), BETA.uuid: (guest(3, "web1.example.com"),)}
FACTS = {ALPHA.uuid: facts("alpha"), BETA.uuid: facts("beta")}
LIVE = Live().and_of(GUESTS, FACTS)
BEFORE = Moment().next(STATE, LIVE)


def all_rows(moment: Moment) -> dict[tuple[str, Any], Any]:
    state = moment.state
    keys = {
        "cluster": ["cluster"], "group": state.config.groups,
        "network": state.config.networks, "node": state.config.nodes,
        "instance": state.config.instances, "job": state.jobs,
    }  # fmt: skip
    source = Source(state=state, asker=RecordedAsker(), heard=Heard())
    rows = {
        (kind, key): _row(kind, key, COLUMNS[kind], source, moment.live)
        for kind in ORDER
        for key in keys[kind]
    }
    return {key: row for key, row in rows.items() if row is not None}


def instance(name: str) -> Any:
    return STATE.config.instance(name)


def of(kind: str) -> Stored:
    found: Stored = next(iter(getattr(STATE.config, kind).values()))
    return found


GROUP: Any = of("groups")
WEB1, WEB2 = instance("web1.example.com"), instance("web2.example.com")
DISK, NIC = STATE.config.disks_of(WEB1)[0], STATE.config.nics_of(WEB1)[0]
CHANGES: dict[str, list[Update]] = {
    "a default of the cluster": [Put(replace(CLUSTER, beparams={"vcpus": 7}))],
    "the tags of the cluster": [Put(replace(CLUSTER, tags=("x",)))],
    "the tags of a group": [Put(replace(GROUP, tags=("x",), alloc_policy="last_resort"))],
    "another name of a group": [Put(replace(GROUP, name="racks"))],
    "another master": [Put(replace(CLUSTER, master=BETA.uuid))],
    "a default of nodes in a group": [Put(replace(GROUP, ndparams={"spindle_count": 9}))],
    "a node that is marked offline": [Put(replace(BETA, offline=True))],
    "a node of another name": [Put(replace(BETA, name=NodeName("theta")))],
    "an instance that moves": [Put(replace(WEB1, primary_node=ALPHA.uuid))],
    "an instance of another name": [Put(replace(WEB1, name=InstanceName("shop")))],
    "an instance that is wanted down": [Put(replace(WEB1, admin_state=AdminState.DOWN))],
    "an instance that goes": [Delete(WEB2)],
    "a disk that grows": [Put(replace(DISK, size=MiB(9999)))],
    "a nic that changes": [Put(replace(NIC, mac="aa:00:00:ff:ff:ff"))],
    "an instance of another name in a network": [Put(replace(MAIL, name=InstanceName("post")))],
    "a nic that leaves its network": [Put(replace(LAN_NIC, network=None, ip=""))],
    "a network of another name": [Put(replace(LAN, name=NetworkName("office")))],
    "a network that is reserved from": [Put(replace(LAN, reserved=("192.0.2.9",)))],
    "a network that goes": [Delete(LAN)],
    "a job that ends": [Put(replace(JOBS[2], ended=40.0))],
    "a job that comes": [Put(Job(id=JobId(9), received=1.0, ops=JOBS[2].ops))],
    "a job that is archived": [Delete(JOBS[1])],
}
TOLD: dict[str, Live] = {
    "a guest that ends": LIVE.and_of({BETA.uuid: ()}, {}),
    "a guest elsewhere": LIVE.and_of({ALPHA.uuid: (*GUESTS[ALPHA.uuid], *GUESTS[BETA.uuid])}, {}),
    "a guest with other memory": LIVE.and_of(
        {BETA.uuid: (replace(GUESTS[BETA.uuid][0], memory=MiB(77)),)}, {}
    ),
    "a node that is silent": LIVE.and_of(
        {BETA.uuid: Unreachable("gone")}, {BETA.uuid: Unreachable("gone")}
    ),
    "a node with less memory": LIVE.and_of(
        {}, {BETA.uuid: replace(FACTS[BETA.uuid], memory_free=MiB(1))}
    ),
    "a node that is heard": LIVE.and_of({GAMMA.uuid: ()}, {GAMMA.uuid: facts("gamma")}),
}


def check_all_found(after: Moment) -> None:
    old, new = all_rows(BEFORE), all_rows(after)
    found = changed_rows(BEFORE, after)
    differing = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    assert differing <= {(kind, key) for kind, keys in found.items() for key in keys}


@pytest.mark.parametrize("change", CHANGES)
def test_every_row_that_looks_otherwise_is_found(change: str) -> None:
    after = BEFORE.next(STATE.apply(CHANGES[change]), LIVE)
    assert all_rows(after) != all_rows(BEFORE)
    check_all_found(after)


@pytest.mark.parametrize("told", TOLD)
def test_every_row_of_which_nodes_tell_otherwise_is_found(told: str) -> None:
    check_all_found(BEFORE.next(STATE, TOLD[told]))


def test_what_nodes_tell_of_time_passing_changes_no_instance() -> None:
    later = LIVE.and_of(
        {BETA.uuid: (replace(GUESTS[BETA.uuid][0], cpu_seconds=9.0, resident=MiB(9)),)}, {}
    )
    assert not changed_rows(BEFORE, BEFORE.next(STATE, later))["instance"]


def test_a_change_of_one_instance_looks_at_no_other() -> None:
    after = BEFORE.next(STATE.apply([Put(replace(WEB1, tags=("x",)))]), LIVE)
    found = changed_rows(BEFORE, after)
    assert found["instance"] == {WEB1.uuid}
    assert found["node"] == {BETA.uuid}
    assert not found["job"]


@pytest.mark.parametrize("change", ["the tags of the cluster", "the tags of a group"])
def test_tags_of_what_has_many_instances_have_none_of_them_looked_at(change: str) -> None:
    after = BEFORE.next(STATE.apply(CHANGES[change]), LIVE)
    assert not changed_rows(BEFORE, after)["instance"]


def test_jobs_are_open_until_they_have_ended() -> None:
    assert BEFORE.open_jobs.keys() == {3}
    done = replace(JOBS[2], ops=tuple(ended(JOBS[2].ops)))
    after = BEFORE.next(STATE.apply([Put(done)]), LIVE)
    assert not after.open_jobs


def test_the_end_of_a_job_concerns_the_nodes_that_it_names() -> None:
    job = Job(
        id=JobId(9),
        received=1.0,
        ops=(
            OperationRecord(
                input={"OP_ID": "OP_X", "instance_name": "web1.example.com", "nodes": ["gamma"]},
                summary="X",
            ),
        ),
    )
    begun: State = STATE.apply([Put(job)])
    moment = BEFORE.next(begun, LIVE)
    assert not ended_on(BEFORE, begun)
    after = begun.apply([Put(replace(job, ops=tuple(ended(job.ops))))])
    assert ended_on(moment, after) == {BETA.uuid, GAMMA.uuid}
    assert ended_on(BEFORE, after) == {BETA.uuid, GAMMA.uuid}  # it came and went in between
    moved = begun.apply([Put(replace(WEB1, primary_node=ALPHA.uuid))])
    on_the_way = moment.next(moved, LIVE)
    after = moved.apply([Put(replace(job, ops=tuple(ended(job.ops))))])
    assert ended_on(on_the_way, after) == {ALPHA.uuid, BETA.uuid, GAMMA.uuid}


def ended(ops: Iterable[OperationRecord]) -> list[OperationRecord]:
    return [replace(op, status=Status.SUCCESS) for op in ops]
