"""Which filter rule applies to a job: the first, in their order, of which all predicates fit.

A predicate is one of

    ["jobid", condition]    of ``id``; ``"watermark"`` as a value is the rule's
    ["opcode", condition]   of ``OP_ID`` and the parameters of an operation: ``disks.0.size``
    ["reason", condition]   of ``source``, ``reason`` and ``timestamp`` of an entry of the trail

and the last two are true of a job if they are of one of its operations, or entries. A condition on
a parameter that an operation does not have is neither true nor false, as in queries.

Source: Ganeti's design document on filtering of jobs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from common.errors import InvalidRequest
from common.model.filter_rule import Action, FilterRule, in_order
from common.model.job import Job
from common.names import JobId
from coordinator.queries.field import Field, Kind, Missing
from coordinator.queries.filter import DEEPEST, compile_filter

Fits = Callable[[Job], bool]


class Chain:
    """Rules in their order, ready to be applied; those that say CONTINUE never do."""

    def __init__(self, rules: Iterable[FilterRule]) -> None:
        effective = (rule for rule in rules if rule.action is not Action.CONTINUE)
        self._rules = [(rule, predicates_of(rule)) for rule in sorted(effective, key=in_order)]

    def applying(self, job: Job) -> FilterRule | None:
        """Return the rule that decides about a job, if any does."""
        found = (rule for rule, predicates in self._rules if all(fits(job) for fits in predicates))
        return next(found, None)


def predicates_of(rule: FilterRule) -> list[Fits]:
    """Return what tells whether a job fits, for each predicate.

    Raises:
        InvalidRequest: there is no such predicate, or its condition makes no sense.
    """
    return [_compile(name, condition, rule.watermark) for name, condition in rule.predicates]


def _compile(name: str, condition: Any, watermark: JobId) -> Fits:
    match name:
        case "jobid":
            of_number = compile_filter(_with_watermark(condition, watermark, 0), _NUMBER)
            return lambda job: of_number(job.id) is True
        case "opcode":
            of_operation = compile_filter(condition, _Parameters())
            return lambda job: any(of_operation(op.input) is True for op in job.ops)
        case "reason":
            of_entry = compile_filter(condition, _REASON)
            return lambda job: any(of_entry(entry) is True for entry in reasons_of(job))
        case _:
            raise InvalidRequest(
                f"“{name}” is no predicate of a filter rule; there are jobid, opcode and reason."
            )


def _with_watermark(condition: Any, watermark: JobId, depth: int) -> Any:
    match condition:
        case ["|" | "&" | "!" as sign, *parts] if depth <= DEEPEST:  # deeper ones are refused
            return [sign, *(_with_watermark(part, watermark, depth + 1) for part in parts)]
        case [str() as sign, str() as field, "watermark"]:
            return [sign, field, watermark]
        case _:
            return condition


def reasons_of(job: Job) -> Iterator[Sequence[Any]]:
    """Yield the entries of a job's reason trail: source, text and nanoseconds since 1970."""
    for op in job.ops:
        yield from op.input.get("reason", ())


class _Parameters(Mapping[str, Field[Mapping[str, Any]]]):
    """A field for whatever name: operations differ in what they have."""

    def __getitem__(self, name: str) -> Field[Mapping[str, Any]]:
        return Field(name, name, Kind.OTHER, "", partial(_parameter, name.split(".")))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _parameter(path: Sequence[str], given: Any) -> Any:
    for part in path:
        match given:
            case dict() if part in given:
                given = given[part]
            case list() if part.isdecimal() and int(part) < len(given):
                given = given[int(part)]
            case _:
                return Missing.UNKNOWN_FIELD
    return given


_NUMBER: dict[str, Field[JobId]] = {"id": Field("id", "ID", Kind.NUMBER, "", lambda number: number)}
_REASON: dict[str, Field[Sequence[Any]]] = {
    "source": Field("source", "Source", Kind.TEXT, "", itemgetter(0)),
    "reason": Field("reason", "Reason", Kind.TEXT, "", itemgetter(1)),
    "timestamp": Field("timestamp", "Timestamp", Kind.NUMBER, "", itemgetter(2)),
}
