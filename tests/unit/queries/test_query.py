import asyncio
import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NotFound
from common.luxi.failures import JobLost
from common.model.template import DiskTemplate
from common.names import JobId
from coordinator.queries.classic import (
    config_values,
    query_exports,
    query_jobs,
    query_objects,
    query_tags,
)
from coordinator.queries.cluster_info import cluster_info
from coordinator.queries.job_fields import job_values
from coordinator.queries.query import TESTED_AT_ONCE, query, query_fields
from coordinator.state.rows import Put
from tests.unit.queries.cluster import ALPHA, BETA, GROUP, JOBS, STATE, RecordedAsker, guest, source

NO_DATA, UNAVAILABLE, OFFLINE = (2, None), (3, None), (4, None)


def ask(what: str, fields: str, condition: Any = None, asker: RecordedAsker | None = None) -> Any:
    return asyncio.run(query(what, fields.split(","), condition, source(asker)))["data"]


def test_instances_come_by_name_with_what_the_nodes_told() -> None:
    rows = ask("instance", "name,pnode,status,oper_ram,oper_state")
    assert rows == [
        [(0, "db1.example.com"), (0, "alpha"), (0, "running"), (0, 256), (0, True)],
        [(0, "mail"), (0, "gamma"), (0, "ERROR_nodeoffline"), OFFLINE, OFFLINE],
        [(0, "web1.example.com"), (0, "beta"), (0, "running"), (0, 256), (0, True)],
        [(0, "web2.example.com"), (0, "beta"), (0, "ADMIN_down"), UNAVAILABLE, (0, False)],
    ]


def test_nodes_are_asked_only_for_what_is_shown_and_only_once() -> None:
    asker = RecordedAsker()
    ask("instance", "name,admin_state,be/maxmem,disk.sizes", None, asker)
    assert asker.asked == []
    ask("instance", "name,status,oper_ram", None, asker)
    assert asker.asked == [("guests", ["alpha", "beta"])]


def test_a_filter_on_configuration_spares_the_nodes_of_rows_left_out() -> None:
    asker = RecordedAsker()
    ask("node", "name,mfree", ["==", "name", "beta"], asker)
    assert asker.asked == [("facts", ["beta"])]
    asker.asked.clear()
    assert ask("instance", "name,status", ["==", "pnode", "nowhere"], asker) == []
    assert asker.asked == []


def test_a_filter_may_look_at_what_is_not_shown() -> None:
    assert ask("instance", "name", ["==", "status", "ADMIN_down"]) == [[(0, "web2.example.com")]]


def test_others_get_turns_while_a_long_list_is_filtered() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def scenario() -> None:
        many = [Put(replace(JOBS[2], id=JobId(number))) for number in range(4, 1004)]
        asked = dataclasses.replace(source(), state=STATE.apply(many))
        running = asyncio.ensure_future(others())
        found = await query("job", ["id"], ["=~", "status", "x"], asked)
        assert found["data"] == []
        running.cancel()

    asyncio.run(scenario())
    assert turns >= 1000 // TESTED_AT_ONCE - 1


def test_a_node_that_does_not_answer_leaves_gaps_not_errors() -> None:
    asker = RecordedAsker(dead=[BETA])
    rows = ask("instance", "name,status,oper_ram", ["=~", "name", "^web"], asker)
    assert [row[1:] for row in rows] == [[(0, "ERROR_nodedown"), NO_DATA]] * 2
    rows = ask("node", "name,mfree,dtotal,role", None, RecordedAsker(dead=[BETA]))
    assert rows == [
        [(0, "alpha"), (0, 2048), (0, 5312), (0, "M")],
        [(0, "beta"), NO_DATA, NO_DATA, (0, "C")],
        [(0, "gamma"), OFFLINE, OFFLINE, (0, "O")],
    ]


def test_a_guest_on_another_node_is_noticed() -> None:
    asker = RecordedAsker()
    asker.running[ALPHA.uuid] += (guest(3, "web1.example.com"),)
    asker.running[BETA.uuid] = ()
    rows = ask("instance", "status,oper_ram", ["==", "name", "web1.example.com"], asker)
    assert rows == [[(0, "ERROR_wrongnode"), (0, 256)]]


def test_a_display_is_told_where_it_is() -> None:
    asker = RecordedAsker()
    (web1,) = asker.running[BETA.uuid]
    asker.running[BETA.uuid] = (replace(web1, display="[::1]:5907"),)
    rows = ask("instance", "network_port,console", ["=~", "name", "^(db1|web1)"], asker)
    assert [row[0] for row in rows] == [UNAVAILABLE, (0, 5907)]
    told = [row[1][1]["message"] for row in rows]
    assert "display" not in told[0]
    assert "Its display is at [::1]:5907 of its node" in told[1]


def test_names_are_answered_in_the_order_asked_and_must_exist() -> None:
    names = ["|", ["==", "name", "web2.example.com"], ["=", "name", "mail"]]
    assert ask("instance", "name", names) == [[(0, "web2.example.com")], [(0, "mail")]]
    with pytest.raises(NotFound, match="web9"):
        ask("instance", "name", ["==", "name", "web9"])
    with pytest.raises(NotFound, match="web9"):
        ask("instance", "name", ["|", ["==", "name", "mail"], ["==", "name", "web9"]])
    with pytest.raises(JobLost, match="no job 77"):
        ask("job", "id", ["==", "id", 77])


def test_a_shortened_name_or_a_uuid_is_as_good_as_the_whole_name() -> None:
    for name in ("web1", STATE.config.instance("web1").uuid):
        assert ask("instance", "name,status", ["|", ["==", "name", name]]) == [
            [(0, "web1.example.com"), (0, "running")]
        ]
    assert ask("node", "name", ["=", "name", BETA.uuid]) == [[(0, "beta")]]


def test_devices_and_parameters() -> None:
    rows = ask(
        "instance",
        "disk.sizes,disk.size/1,disk.count,nic.macs,mac,nic.link/0,be/maxmem,be/vcpus,"
        "hv/kernel_path,hv/acpi,tags,snodes",
        ["|", ["==", "name", "db1.example.com"], ["==", "name", "web2.example.com"]],
    )
    mac = "aa:00:00:00:00:01"
    assert rows[0] == [
        (0, [64, 128]), (0, 128), (0, 2), (0, [mac]), (0, mac), (0, "br0"), (0, 256), (0, 1),
        (0, "/boot/vmlinuz"), (0, True), (0, ["db"]), (0, []),
    ]  # fmt: skip
    assert rows[1][1] == UNAVAILABLE
    assert rows[1][4] == UNAVAILABLE


def test_parameters_of_a_system_are_told_with_those_that_the_cluster_has_for_it() -> None:
    config = STATE.config
    own = {"mirror": "near", "size": "2G"}
    web1 = replace(config.instance("web1"), os="debian+sid", osparams=own)
    below = {"debian": {"mirror": "far", "lang": "de"}, "debian+sid": {"lang": "en"}}
    state = STATE.apply([Put(web1), Put(replace(config.cluster, osparams=below))])
    of_state = dataclasses.replace(source(), state=state)
    fields = ["osparams", "custom_osparams"]
    (row,) = asyncio.run(query("instance", fields, ["==", "name", "web1"], of_state))["data"]
    assert row == [(0, {"mirror": "near", "lang": "en", "size": "2G"}), (0, own)]


def test_parameters_are_found_by_their_longer_names_in_lists_filters_and_of_fields() -> None:
    both = "be/vcpus,beparam/vcpus,hv/acpi,hvparam/acpi"
    rows = ask("instance", both, ["==", "hvparam/kernel_path", "/boot/vmlinuz"])
    assert rows[0] == [(0, 1), (0, 1), (0, True), (0, True)]
    assert ask("instance", both, ["==", "hvparam/kernel_path", "/boot/other"]) == []
    assert ask("instance", both, ["?", "be/vcpus"]) == ask("instance", both, ["?", "beparam/vcpus"])
    told = query_fields("instance", both.split(","))["fields"]
    assert [field["name"] for field in told] == both.split(",")
    assert [field["kind"] for field in told] == ["number", "number", "bool", "bool"]
    (unknown,) = query_fields("instance", ["hvparam/nope"])["fields"]
    assert unknown["kind"] == "unknown"
    with pytest.raises(InvalidRequest, match="hvparam/nope"):
        ask("instance", "name", ["?", "hvparam/nope"])
    ((classic, merged),) = asyncio.run(
        query_objects("instance", ["web1"], ["hvparam/acpi", "hvparams"], source())
    )
    assert classic == merged["acpi"]


def test_mirrored_instances_are_told_of_both_their_nodes() -> None:
    web1 = STATE.config.instance("web1.example.com")
    mirrored = replace(web1, disk_template=DiskTemplate.DRBD)
    disks = [replace(disk, nodes=(BETA.uuid, ALPHA.uuid)) for disk in STATE.config.disks_of(web1)]
    state = STATE.apply([Put(mirrored), *map(Put, disks)])

    def ask_this(what: str, fields: str) -> Any:
        told = query(what, fields.split(","), ["==", "name", names[what]], source(state=state))
        return [[value for _, value in row] for row in asyncio.run(told)["data"]]

    names = {"instance": web1.name, "node": ALPHA.name}
    assert ask_this("instance", "pnode,snodes,snodes.group,snodes.group.uuid,disk_usage") == [
        ["beta", ["alpha"], ["default"], [GROUP], 64 + 128]
    ]
    fields = "pinst_list,sinst_list,sinst_cnt"
    assert ask_this("node", fields) == [[["db1.example.com"], [web1.name], 1]]
    names["node"] = BETA.name
    assert ask_this("node", fields) == [[[web1.name, "web2.example.com"], [], 0]]


def test_an_unknown_field_is_a_column_of_its_own_kind() -> None:
    answer = asyncio.run(query("node", ["name", "nope"], None, source()))
    assert [field["kind"] for field in answer["fields"]] == ["text", "unknown"]
    assert answer["data"][0] == [(0, "alpha"), (1, None)]


def test_archived_jobs_show_only_when_meant() -> None:
    assert ask("job", "id") == [[(0, 2)], [(0, 3)]]
    assert ask("job", "id", ["?", "archived"]) == [[(0, 1)]]
    assert ask("job", "id", ["==", "id", "1"]) == [[(0, 1)]]


def test_job_fields_have_ganeti_forms() -> None:
    values = job_values(
        JOBS[1], ["received_ts", "opresult", "opfailure", "oplog", "ops", "status", "summary"]
    )
    assert values == [
        [20, 500000],
        [["OpPrereqError", ["It is there.", "wrong_state"]]],
        [{"code": "conflict", "message": "It is there.", "detail": {"node": "delta"}}],
        [[[1, [21, 500000], "message", "looking"]]],
        [{"depends": None, "OP_ID": "OP_NODE_ADD", "node_name": "delta", "token": "<secret>"}],
        "error",
        ["NODE_ADD(delta)"],
    ]
    assert job_values(JOBS[2], ["start_ts", "priority"]) == [None, -10]
    with pytest.raises(InvalidRequest, match="nope"):
        job_values(JOBS[2], ["nope"])


def test_groups_clusters_and_locks() -> None:
    assert ask("group", "name,node_cnt,pinst_cnt,node_list") == [
        [(0, "default"), (0, 3), (0, 4), (0, ["alpha", "beta", "gamma"])]
    ]
    assert ask("cluster", "name,drain_flag") == [[(0, "test"), (0, False)]]
    assert ask("cluster", "master_node") == [[(0, "alpha")]]
    assert ask("lock", "name,mode,owner,pending") == [
        [(0, "instance/web1.example.com"), (0, "exclusive"), (0, ["job 2"]),
         (0, [["shared", ["job 3"]]])],
        [(0, "node/beta"), (0, None), (0, None), (0, [])],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "fields", "condition"),
    [
        ("planet", ["name"], None),
        (["node"], ["name"], None),
        ("node", "name", None),
        ("node", [1], None),
        ("node", ["name"], ["==", "nope", 1]),
        ("node", ["name"], {"name": "alpha"}),
    ],
)
def test_a_malformed_query_is_refused(what: Any, fields: Any, condition: Any) -> None:
    with pytest.raises(InvalidRequest):
        asyncio.run(query(what, fields, condition, source()))


def test_classic_queries_give_plain_values() -> None:
    def classic(what: str, names: list[str], fields: list[str], lock: bool = False) -> Any:
        return asyncio.run(query_objects(what, names, fields, source(), lock=lock))

    assert classic("node", ["beta"], ["name", "mfree"]) == [["beta", 2048]]
    assert classic("instance", [], ["name", "disk.size/1"])[1] == ["mail", None]
    with pytest.raises(InvalidRequest, match="locking"):
        classic("node", [], ["name"], lock=True)
    with pytest.raises(InvalidRequest, match="nope"):
        classic("node", [], ["nope"])
    rows = asyncio.run(query_jobs([3, 77], ["id", "status"], source()))
    assert rows == [[3, "queued"], None]
    assert asyncio.run(query_jobs(None, ["id"], source())) == [[2], [3]]


def test_exports_are_told_by_node_and_a_silent_node_is_told_as_such() -> None:
    asked = source(RecordedAsker(dead=[BETA]))
    told = asyncio.run(query_exports([], asked))
    assert (told["alpha"], told["beta"]) == (["of-alpha"], False)
    assert asyncio.run(query_exports(["alpha"], asked)) == {"alpha": ["of-alpha"]}
    answer = asyncio.run(query("export", ["node", "export"], ["==", "node", "beta"], asked))
    assert answer["data"] == [[(0, "beta"), (2, None)]]


def test_operating_systems_are_told_by_those_who_answer() -> None:
    asked = source(RecordedAsker(dead=[BETA]))
    fields = ["name", "valid", "api_versions", "node_status", "nonsense"]
    answer = asyncio.run(query("os", fields, None, asked))
    there = {"alpha": [["/srv/os/noop", True, "", [], [], [10], True]]}
    assert answer["data"] == [[(0, "noop"), (0, True), (0, [10]), (0, there), (1, None)]]
    none = asyncio.run(query("os", ["name"], ["==", "name", "plan9"], asked))
    assert none["data"] == []


def test_values_tags_and_info() -> None:
    config = STATE.config
    assert config_values(["master_node", "cluster_name"], config) == ["alpha", "test"]
    with pytest.raises(InvalidRequest, match="nope"):
        config_values(["nope"], config)
    assert query_tags("instance", "db1.example.com", config) == ["db"]
    assert query_tags("cluster", "", config) == []
    with pytest.raises(InvalidRequest, match="planet"):
        query_tags("planet", "", config)
    info = cluster_info(config)
    assert info["master"] == "alpha"
    assert info["ipolicy"]["std"]["memory-size"] == 128
    assert info["beparams"]["default"]["maxmem"] == 128


def test_every_field_of_every_object_can_be_shown() -> None:
    for what in ("instance", "node", "group", "job", "cluster", "lock"):
        names = [field["name"] for field in query_fields(what, None)["fields"]]
        for asker in (RecordedAsker(), RecordedAsker(dead=[ALPHA, BETA])):
            answer = asyncio.run(query(what, names, None, source(asker)))
            assert answer["data"]
            assert all(len(row) == len(names) for row in answer["data"])
