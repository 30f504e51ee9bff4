"""Asking which operating system is to be installed, of those that can be."""

import sys

from common.errors import InvalidRequest, NotFound
from common.luxi.client import Client
from coordinator.cli.confirm import NeedsConfirmation
from coordinator.cli.follow import follow

_FIELDS = ("name", "variants")


def select_os(client: Client) -> str:
    """Show what can be installed, and return what the operator chooses: by number or name.

    Raises:
        NotFound: nothing can be installed.
        InvalidRequest: the answer is none of them.
        NeedsConfirmation: nobody is there to be asked.
    """
    wire = {"OP_ID": "OP_OS_DIAGNOSE", "output_fields": _FIELDS, "names": []}
    ended = follow(client, int(client.call("SubmitJob", [wire])), out=sys.stderr)
    if ended.failure is not None:
        raise ended.failure
    names = [name for system, variants in ended.results[0] for name in full(system, variants)]
    if not names:
        raise NotFound("No operating system can be installed; “gnt-os diagnose” tells why.")
    for number, name in enumerate(names, start=1):
        print(f"{number:>3}: {name}", file=sys.stderr)
    print("Which? ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer:
        raise NeedsConfirmation("No operating system was chosen; nothing was done.")
    if answer.isdecimal() and 1 <= int(answer) <= len(names):
        return str(names[int(answer) - 1])
    if answer not in names:
        raise InvalidRequest(f"“{answer}” is none of them; nothing was done.")
    return answer


def full(system: str, variants: list[str]) -> list[str]:
    """Return what instances call an operating system: with each of its variants, if it has any."""
    return [f"{system}+{variant}" for variant in variants] or [system]
