"""Which rule applies to a job, and what predicates are true of it."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.model.filter_rule import Action, FilterRule
from common.model.job import Job, OperationRecord
from common.names import FilterId, JobId
from coordinator.jobs.filtering import Chain, predicates_of

MIGRATION = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1", "allow_failover": True}
CREATION = {
    "OP_ID": "OP_INSTANCE_CREATE",
    "disks": [{"size": 1024}],
    "beparams": {"memory": 64},
    "reason": [["gnt:user", "maintenance of rack 3", 5], ["gnt:client:gnt-instance", "more", 7]],
}


def job(*inputs: dict[str, Any], number: int = 7) -> Job:
    ops = tuple(OperationRecord(input=each, summary="") for each in inputs or (MIGRATION,))
    return Job(id=JobId(number), ops=ops, received=0.0)


def rule(
    *predicates: tuple[str, Any],
    action: Action = Action.PAUSE,
    uuid: str = "a",
    priority: int = 0,
    watermark: int = 5,
) -> FilterRule:
    return FilterRule(
        uuid=FilterId(uuid),
        watermark=JobId(watermark),
        priority=priority,
        predicates=predicates,
        action=action,
    )


def applies(name: str, condition: Any, *inputs: dict[str, Any], number: int = 7) -> bool:
    return Chain([rule((name, condition))]).applying(job(*inputs, number=number)) is not None


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        (None, True),
        ([">", "id", "watermark"], True),
        (["<=", "id", "watermark"], False),
        (["=", "id", 7], True),
        (["=", "id", "7"], True),
        (["!", [">", "id", "watermark"]], False),
        (["|", ["=", "id", 3], ["&", [">", "id", "watermark"], ["<", "id", 9]]], True),
    ],
)
def test_jobs_are_told_by_their_number_and_the_watermark(condition: Any, fits: bool) -> None:
    assert applies("jobid", condition) is fits


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        (["=", "OP_ID", "OP_INSTANCE_MIGRATE"], True),
        (["=~", "OP_ID", "^OP_INSTANCE_"], True),
        (["=", "OP_ID", "OP_NODE_ADD"], False),
        (["&", ["=", "instance_name", "web1"], ["?", "allow_failover"]], True),
        (["=", "disks.0.size", 1024], True),
        (["=", "disks.1.size", 1024], False),
        ([">", "beparams.memory", 32], True),
        (["&", ["=", "instance_name", "web1"], [">", "beparams.memory", 32]], False),
        (["!=", "colour", "blue"], False),
        (["!", ["=", "colour", "blue"]], False),
    ],
)
def test_an_operation_is_told_by_its_parameters_and_one_of_a_job_is_enough(
    condition: Any, fits: bool
) -> None:
    assert applies("opcode", condition, MIGRATION, CREATION) is fits


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        (["=~", "reason", "^maintenance"], True),
        (["&", ["=~", "reason", "^maintenance"], ["=", "source", "gnt:user"]], True),
        (["&", ["=~", "reason", "^maintenance"], [">", "timestamp", 6]], False),
        (["=", "source", "gnt:watcher"], False),
    ],
)
def test_one_entry_of_a_jobs_reasons_is_enough(condition: Any, fits: bool) -> None:
    assert applies("reason", condition, MIGRATION, CREATION) is fits
    assert not applies("reason", condition, MIGRATION)


def test_all_predicates_have_to_be_true_and_none_is_true_of_all() -> None:
    new, migration = ("jobid", [">", "id", 6]), ("opcode", ["=", "OP_ID", "OP_INSTANCE_MIGRATE"])
    both = Chain([rule(new, migration)])
    assert both.applying(job())
    assert not both.applying(job(number=6))
    assert not both.applying(job(CREATION))
    assert Chain([rule()]).applying(job())


def test_rules_are_asked_by_priority_then_watermark_then_uuid_and_continue_never_decides() -> None:
    ordered = [
        rule(uuid="e", action=Action.CONTINUE),
        rule(("jobid", ["<", "id", 3]), uuid="d"),
        rule(uuid="c", watermark=8),
        rule(uuid="b", priority=1, watermark=2),
        rule(uuid="a", priority=1, watermark=4),
        rule(uuid="f", priority=1, watermark=4),
    ]
    for count, first in enumerate(("c", "b", "a", "f", None), start=2):
        for some in permutations([*ordered[:2], *ordered[count:]]):
            found = Chain(some).applying(job())
            assert (found and found.uuid) == first


@pytest.mark.parametrize(
    ("name", "condition", "told"),
    [
        ("job", None, "jobid, opcode and reason"),
        ("jobid", ["=", "number", 1], "“number”, which does not exist"),
        ("jobid", ["=", "id", "newest"], "a number"),
        ("reason", ["=", "why", ""], "“why”, which does not exist"),
        ("opcode", ["=~", "OP_ID", "("], "regular expression"),
        ("opcode", ["=", "OP_ID"], "no filter"),
    ],
)
def test_a_predicate_that_makes_no_sense_is_refused(name: str, condition: Any, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        predicates_of(rule((name, condition)))


def test_a_condition_that_is_nested_too_deeply_is_refused() -> None:
    condition: Any = [">", "id", "watermark"]
    for _ in range(900):
        condition = ["!", condition]
    for name in ("jobid", "opcode", "reason"):
        with pytest.raises(InvalidRequest, match="levels deep"):
            predicates_of(rule((name, condition)))


VALUES = st.none() | st.booleans() | st.integers() | st.sampled_from(["watermark", "id", "OP_ID"])
CONDITIONS = st.recursive(
    VALUES
    | st.tuples(st.sampled_from(["=", "!=", "<", "=~", "=[]", "?"]), VALUES, VALUES).map(list),
    lambda inner: st.lists(st.sampled_from(["|", "&", "!"]) | inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["jobid", "opcode", "reason", "other"]), CONDITIONS)
def test_any_json_is_refused_or_tells_jobs_apart_without_failing(name: str, told: Any) -> None:
    try:
        chain = Chain([rule((name, told))])
    except InvalidRequest:
        return
    chain.applying(job(MIGRATION, CREATION))
