"""Follow a job to its end, showing what it says; it does not need us to go on."""

import sys
import time
from typing import Any, NamedTuple, TextIO

from common.durations import spoken
from common.errors import Cancelled, GntError, Unreachable
from common.luxi.client import Client, ConnectionLost, NoCoordinator
from common.luxi.failures import JobLost, from_ganeti, from_wire
from coordinator.cli.cell import plain
from coordinator.cli.colour import paint_finding

NEWS_S = 20.0  # how long the coordinator may keep us waiting for news
SILENCE_S = 2.0  # how long a job may wait before we say for what
PATIENCE_S = 300.0  # how long a coordinator may be away before we give up watching
HINT_S = 5.0  # after which we say how it is started
RETRY_S = 0.5
DETAIL = "detail"  # kind of log entries that are left out, unless asked for

_WAITING = ("queued", "waiting")


class Interrupted(GntError):
    """The operator stopped watching."""

    code = "interrupted"
    exit_code = 130


class Ended(NamedTuple):
    """How a job ended. ``results`` has one value an operation."""

    job: int
    status: str
    results: list[Any]
    failure: GntError | None

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        told = {"job": self.job, "status": self.status, "results": self.results}
        if self.failure is None:
            return told
        failure = self.failure
        return told | {
            "error": {"code": failure.code, "message": failure.message, "detail": failure.detail}
        }


def follow(
    client: Client, job: int, *, out: TextIO | None, label: str = "", details: bool = False
) -> Ended:
    """Show a job's messages on ``out`` until it has ended, and tell how.

    Each line begins with ``label``, which tells jobs apart that are shown together; ``details``
    are for those who ask for them.
    A coordinator that is restarted, or a master that comes back, is waited for.

    Raises:
        Interrupted: by Ctrl-C; the job goes on.
        JobLost: there is no such job.
        Unreachable: the coordinator stays away.
    """
    try:
        _show_news(client, job, out, f"{label}: " if label else "", details=details)
        status, results, failures = _ask(
            client, "QueryJobs", [job], ["status", "opresult", "opfailure"]
        )[0]
    except KeyboardInterrupt:
        raise Interrupted(
            f"Job {job} goes on: “gnt-job watch {job}” shows it again, “gnt-job cancel {job}” "
            "stops it."
        ) from None
    except (TypeError, ValueError, IndexError) as error:
        raise JobLost(f"There is no job {job} any more.") from error
    failure = _failure(job, status, results, failures)
    if failure is not None and label and label not in failure.message:
        message = f"{label}: {failure.message}"
        failure = GntError.from_code(failure.code, message, failure.detail)
    return Ended(job, status, results, failure)


def format_log(entry: list[Any]) -> str:
    """Write a log entry as Ganeti does: ``Mon Jan  1 00:00:00 2026 creating disks``."""
    _, (seconds, _microseconds), kind, message = entry
    text = plain(message) if isinstance(message, str) else f"(for programs: {plain(kind)})"
    return f"{time.ctime(seconds)} {text}"


def waits_for(job: int, what: str, for_s: float | None) -> str:
    """Say what a job waits for, and for how long it has."""
    since = "" if for_s is None else f", for {spoken(for_s)} now"
    return f"Job {job} waits for {plain(what)}{since}."


def _show_news(client: Client, job: int, out: TextIO | None, prefix: str, *, details: bool) -> None:
    info: Any = None
    serial = -1
    told: list[str] = []
    status = "queued"
    while True:
        patience_s = SILENCE_S if status in _WAITING and not told else NEWS_S
        news = _ask(client, "WaitForJobChange", job, ["status"], info, serial, patience_s)
        if news != "nochange":
            info, entries = news
            for entry in entries or ():
                serial = max(serial, entry[0])
                if out is not None and (details or entry[2] != DETAIL):
                    print(paint_finding(prefix + format_log(entry), out), file=out, flush=True)
        status = info[0] if info else ""
        if status in ("success", "error", "canceled"):
            return
        if news == "nochange" and status in _WAITING:
            _, reasons = _ask(client, "WhyJob", job)
            if reasons and [what for what, _ in reasons] != told:
                told = [what for what, _ in reasons]
                for reason in reasons:
                    print(prefix + waits_for(job, *reason), file=sys.stderr, flush=True)


def _ask(client: Client, method: str, *args: Any) -> Any:
    """Call the coordinator, however long it takes it to come back within our patience."""
    begin = time.monotonic()
    told = hinted = False
    while True:
        try:
            return client.call(method, *args)
        except (NoCoordinator, ConnectionLost) as error:
            if error.detail.get("reason") == "forbidden":
                raise
            if time.monotonic() - begin > PATIENCE_S:
                raise Unreachable(
                    f"The coordinator has been away for {PATIENCE_S:g} seconds. What it was asked "
                    "to do is not lost: “gnt-job list” shows it when it is back."
                ) from error
            if (
                isinstance(error, NoCoordinator)
                and not hinted
                and time.monotonic() - begin >= HINT_S
            ):
                from coordinator.cli.whereabouts import explain  # only now is it worth looking

                print(explain(error).message, file=sys.stderr, flush=True)
                hinted = True
        if not told:
            print("The coordinator is away; waiting for it to come back.", file=sys.stderr)
            told = True
        time.sleep(RETRY_S)  # noqa: TID251 -- there is no loop to block here


def _failure(job: int, status: str, results: list[Any], failures: list[Any]) -> GntError | None:
    if status == "success":
        return None
    for result, failure in zip(results, failures, strict=True):
        if failure is not None:
            return from_wire(failure) or from_ganeti(result)
    if status == "canceled":
        return Cancelled(f"Job {job} was cancelled.", job=job)
    return GntError(f"Job {job} ended as “{status}”, without saying why.", job=job)
