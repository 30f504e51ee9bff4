"""What is asked is answered with the numbers and in the form that Ganeti's clients expect."""

from typing import Any

import msgspec
import pytest

from common.confd_snapshot import CONFIG_VERSION, PublishedInstance, Snapshot
from coordinator.confd.directory import Directory
from coordinator.confd.service import Known, Service
from tests.support.confd import Told, ask, question, read
from tests.support.published import ALPHA, BETA, SERIAL, published

KEY = b"key"
UNKNOWN, ARGUMENT = Told(1, 0, 0), Told(1, 2, 0)


def service(snapshot: Snapshot | None = None) -> Service:
    made = Service()
    made.known = Known(KEY, Directory(snapshot or published()))
    return made


def ok(answer: Any) -> Told:
    return Told(0, answer, SERIAL)


@pytest.mark.parametrize(
    ("kind", "query", "told"),
    [
        (0, None, Told(0, CONFIG_VERSION, 0)),
        (1, "alpha", ok(0)),
        (1, "beta", ok(1)),
        (1, "gamma", ok(2)),
        (1, BETA, ok(1)),
        (1, "omega", UNKNOWN),
        (1, None, ARGUMENT),
        (1, {"0": "alpha"}, ARGUMENT),
        (2, {"0": None, "1": "198.51.100.1"}, ok("192.0.2.2")),
        (2, {"0": "br1", "1": "198.51.100.1"}, ok("192.0.2.1")),
        (2, {"1": "198.51.100.9"}, UNKNOWN),
        (2, {"0": "br9", "1": "198.51.100.1"}, UNKNOWN),
        (
            2,
            {"0": None, "2": ["198.51.100.1", "198.51.100.9"]},
            ok([[0, "192.0.2.2", SERIAL], [1, 0, 0]]),
        ),
        (2, "198.51.100.1", ARGUMENT),
        (2, {"1": 7}, ARGUMENT),
        (3, None, ok("alpha")),
        (3, {"3": [0, 2, 1]}, ok(["alpha", "192.0.2.1", "192.0.2.1"])),
        (3, {"3": [9]}, ARGUMENT),
        (3, "alpha", ARGUMENT),
        (4, None, ok(["192.0.2.1", "192.0.2.2", "192.0.2.3"])),
        (5, None, ok(["192.0.2.1", "192.0.2.2"])),
        (6, None, ok(["198.51.100.1"])),
        (6, "br9", ok([])),
        (6, {}, ok(["198.51.100.1"])),
        (6, 5, ARGUMENT),
        (
            7,
            "alpha",
            ok(
                [
                    ["alpha", 3, "web2", "disk/0", "primary", "beta"],
                    ["alpha", 5, "web1", "disk/0", "secondary", "beta"],
                ]
            ),
        ),
        (7, "gamma", ok([])),
        (7, "omega", UNKNOWN),
        (8, "omega", UNKNOWN),
        (9, "omega", UNKNOWN),
        (10, "/cluster/cluster_name", ok("greek")),
        (10, f"/nodes/{ALPHA}/primary_ip", ok("192.0.2.1")),
        (10, "/cluster/tags/0", ok("a/b")),
        (10, "/cluster/tags/1", ARGUMENT),
        (10, "/cluster/tags/-1", ARGUMENT),
        (10, "/cluster/__class__", ARGUMENT),
        (10, "cluster", ARGUMENT),
        (10, None, ARGUMENT),
        (11, None, ok({})),
        (12, None, Told(2, None, 0)),
        (-1, None, Told(2, None, 0)),
    ],
)
def test_each_question_is_answered_as_ganetis_is(kind: int, query: Any, told: Told) -> None:
    assert ask(service(), kind, query) == told


def test_instances_and_disks_are_told_whole() -> None:
    told = ask(service(), 8, "alpha")
    assert told is not None
    primaries, secondaries = told.answer
    assert [each["name"] for each in primaries] == ["web2"]
    assert [each["name"] for each in secondaries] == ["web1"]
    assert primaries[0]["primary_node"] == ALPHA
    told = ask(service(), 9, "web1")
    assert told is not None
    (disk,) = told.answer
    assert (disk["iv_name"], disk["size"], disk["dev_type"]) == ("disk/0", 64, "drbd")
    assert disk["logical_id"] == [BETA, ALPHA, 11000, 3, 5, None]


def test_a_pointer_finds_names_with_slashes_and_all_there_is() -> None:
    link = {"a/b~c": "found"}
    snapshot = published()
    cluster = msgspec.structs.replace(snapshot.cluster, nicparams=snapshot.cluster.nicparams | link)
    changed = msgspec.structs.replace(snapshot, cluster=cluster)
    assert ask(service(changed), 10, "/cluster/nicparams/a~1b~0c") == ok("found")
    told = ask(service(), 10, "")
    assert told is not None
    assert told.answer["serial_no"] == SERIAL


def test_another_protocol_is_refused() -> None:
    reply = service().reply(question(KEY, 3, protocol=2), 1_800_000_000.0)
    assert reply is not None
    assert read(reply, KEY) == ARGUMENT


def test_an_answer_that_fits_into_no_datagram_is_refused_and_not_cut_off() -> None:
    snapshot = published()
    cluster = msgspec.structs.replace(snapshot.cluster, tags=("x" * 100,) * 700)
    told = ask(service(msgspec.structs.replace(snapshot, cluster=cluster)), 10, "/cluster/tags")
    assert told == ARGUMENT


def of_many(count: int) -> Service:
    """Return a service of a cluster with so many instances, all of them on alpha."""
    snapshot = published()
    one = snapshot.instances["uuid-web2"]
    numbers = (f"{number:036}" for number in range(count))
    many = {n: msgspec.structs.replace(one, uuid=n, name=f"web{int(n)}") for n in numbers}
    return service(msgspec.structs.replace(snapshot, instances=many))


@pytest.mark.parametrize(
    ("count", "fields"),
    [
        (10, {*PublishedInstance.__struct_fields__}),
        (120, {*PublishedInstance.__struct_fields__} - {"disks", "nics"}),
        (400, {"uuid", "name"}),
    ],
)
def test_many_instances_are_told_with_less_of_each(count: int, fields: set[str]) -> None:
    many = of_many(count)
    for kind, query in ((10, "/instances"), (8, "alpha"), (10, "")):
        told = ask(many, kind, query)
        assert told is not None
        assert told.status == 0
        (answer, *_) = told.answer if kind == 8 else [told.answer]
        if query == "":
            answer = answer["instances"]
        instances = answer if kind == 8 else [*answer.values()]
        assert [each["name"] for each in instances] == [f"web{n}" for n in range(count)]
        assert {*instances[0]} == fields


def test_so_many_that_their_names_do_not_fit_are_refused_and_told_page_by_page() -> None:
    many = of_many(3000)
    assert ask(many, 10, "/instances") == ARGUMENT
    assert ask(many, 8, "alpha") == ARGUMENT
    seen, pages = [""], 0
    while (told := ask(many, 10, {"path": "/instances", "after": seen[-1]})) and told.answer:
        assert told.status == 0
        assert all({"disks", "nics"} <= each.keys() for each in told.answer.values())
        seen += told.answer
        pages += 1
    assert seen == ["", *(f"{number:036}" for number in range(3000))]
    assert pages < 100
    found = ask(many, 10, f"/instances/{seen[-1]}/name")
    assert found == ok("web2999")


@pytest.mark.parametrize(
    "query", [{}, {"path": 1}, {"path": "/cluster/name"}, {"path": "/no"}, {"path": "", "after": 1}]
)
def test_a_page_of_nothing_that_has_pages_is_a_bad_argument(query: Any) -> None:
    assert ask(service(), 10, query) == ARGUMENT


def test_what_cannot_be_read_is_an_internal_error_and_no_silence() -> None:
    damaged = Service()
    damaged.known = Known(KEY, None)
    assert ask(damaged, 3) == Told(1, 1, 0)
