"""What has changed of an instance, as pairs of a name and a value, in Ganeti's words."""

from collections.abc import Iterator, Sequence
from typing import Any

from common.model.nic import Nic
from coordinator.operations.instance.disk_changes import DiskChanges
from coordinator.operations.steps.changes import differing


def layer_in_words(word: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield what has changed of parameters."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield [f"{word}/{name}", after.get(name, "default")]


def nics_in_words(before: Sequence[Nic], after: Sequence[Nic]) -> Iterator[list[Any]]:
    """Yield what has become of nics."""
    old = {nic.uuid: nic for nic in before}
    for index, nic in enumerate(after):
        if nic.uuid not in old:
            yield [f"nic.{index}", f"add:mac={nic.mac},ip={nic.ip or 'none'}"]
        elif changes := differing(old[nic.uuid], nic):
            yield [f"nic.{index}", ",".join(f"{name}={value}" for name, value in changes.items())]
    kept = {nic.uuid for nic in after}
    for index, nic in enumerate(before):
        if nic.uuid not in kept:
            yield [f"nic.{index}", "remove"]


def disks_in_words(changes: DiskChanges) -> list[list[str]]:
    """Return what has become of disks."""
    words, attached = [], {disk.uuid for disk in changes.attached}
    had = {disk.uuid: (number, disk) for number, disk in enumerate(changes.present)}
    for number, disk in enumerate(changes.disks):
        about = f"size={disk.size},mode={disk.mode}"
        if disk.uuid in attached:
            words.append([f"disk/{number}", f"attach:{about},name={disk.name or 'None'}"])
        elif disk.uuid not in had:
            words.append([f"disk/{number}", f"add:{about}"])
        else:
            before = had[disk.uuid][1]
            if disk.mode is not before.mode:
                words.append([f"disk.mode/{number}", disk.mode])
            if disk.name != before.name:
                words.append([f"disk.name/{number}", disk.name or "None"])
    gone = {changes.present[number].uuid for number in changes.removed}
    for disk in changes.gone:
        what = "remove" if disk.uuid in gone else "detach"
        words.append([f"disk/{had[disk.uuid][0]}", what])
    return words
