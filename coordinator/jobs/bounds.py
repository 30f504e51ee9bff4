"""How much of what a job says is kept: never so much that its row could not be stored.

Whatever a node answers ends up in a job: errors, messages, results. A job whose end cannot be
stored would never end. What is too long is cut, with a mark that says so.
"""

from collections.abc import Mapping
from typing import Any

from common.errors import GntError, InvalidRequest
from common.messages import to_builtins, to_json
from common.model.job import Failure, Job, LogEntry

JOB_BYTES = 2**20  # of a job as it is submitted
RESULTS_BYTES = 2 * 2**20  # of all operations of a job together
MESSAGE_CHARACTERS = 8000  # of an error
ENTRY_CHARACTERS = 2000  # of a message in a job's log
ENTRIES, FIRST_ENTRIES = 500, 50  # kept of an operation's log; those of them that are never dropped
DETAILS, DETAIL_CHARACTERS, DETAIL_ITEMS = 20, 1000, 50
LARGEST_NUMBER = 2**53
DEEPEST = 100  # levels of a result; a row may have more, and a result is some levels down in it


def check_job_size(job: Job) -> None:
    """Refuse a job that leaves no room in its row for what happens to it.

    Raises:
        InvalidRequest: how large it is, and how large it may be.
    """
    size = len(to_json(job))
    if size > JOB_BYTES:
        raise InvalidRequest(
            f"The job has {size >> 10} KiB, and {JOB_BYTES >> 10} are the most; split it in two."
        )


def cut(text: str, characters: int) -> str:
    """Return a text that is no longer than that, and can be stored."""
    if len(text) > characters:
        text = f"{text[:characters]}… ({len(text) - characters} more characters)"
    return text.encode(errors="replace").decode()


def failure_of(error: GntError) -> Failure:
    """Return an error as a job keeps it; of its detail what the contract of errors allows."""
    pairs = list(error.detail.items())[:DETAILS]
    detail = {cut(str(key), DETAIL_CHARACTERS): _detail(value) for key, value in pairs}
    return Failure(
        code=cut(error.code, DETAIL_CHARACTERS),
        message=cut(str(error.message), MESSAGE_CHARACTERS),
        detail=detail,
    )


def with_entry(log: tuple[LogEntry, ...], entry: LogEntry) -> tuple[LogEntry, ...]:
    """Add an entry to a log; a long log loses what is neither its beginning nor its end.

    Serials go on counting, so that whoever follows the job misses nothing that is kept.
    """
    if len(log) < ENTRIES:
        return (*log, entry)
    last_gone = log[FIRST_ENTRIES + 1]
    gone = last_gone.serial - log[FIRST_ENTRIES - 1].serial
    mark = LogEntry(
        serial=last_gone.serial, time=last_gone.time, message=f"({gone} messages are left out here)"
    )
    return (*log[:FIRST_ENTRIES], mark, *log[FIRST_ENTRIES + 2 :], entry)


def result_of(value: Any, operations: int) -> Any:
    """Return the result of one of a job's operations as JSON values, or a word in its place."""
    plain = to_builtins(value)
    most = RESULTS_BYTES // operations
    if is_deep(plain):
        return f"(The result is nested more than {DEEPEST} levels deep and was not kept.)"
    size = len(to_json(plain))
    if size > most:
        return f"(The result has {size >> 10} KiB, {most >> 10} are the most; it was not kept.)"
    return plain


def is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Tell whether plain values are nested deeper than so many levels."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    return levels == 0 or any(is_deep(each, levels - 1) for each in value)


def _detail(value: Any, *, inner: bool = False) -> Any:
    """Return a string, a number or a list of them; anything else as a text."""
    match value:
        case None | bool():
            return value
        case int() | float() if -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            return value
        case str():
            return cut(value, DETAIL_CHARACTERS)
        case list() | tuple() if not inner:
            return [_detail(each, inner=True) for each in value[:DETAIL_ITEMS]]
    return cut(_shown(value), DETAIL_CHARACTERS)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # numbers of thousands of digits, hundreds of brackets
        return f"(a {type(value).__name__} that is not shown)"
