"""Instance policies: what sizes are allowed, and how far nodes may be committed.

Names are Ganeti's (``ipolicy``), and so are the defaults, but for the lower bounds: ours
leave room for small test guests.

A group has a layer of its own over the cluster's policy: what it sets counts instead.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict, replace

from common.errors import InvalidRequest
from common.messages import from_builtins, to_builtins
from common.model.parameters import DEFAULT
from common.model.stored import UNKNOWN, Part
from common.model.template import DiskTemplate
from common.names import LARGEST_COUNT, MiB


class Spec(Part, kw_only=True):
    """One size of instance; disk and memory in MiB."""

    memory_size: MiB
    cpu_count: int
    disk_count: int
    disk_size: MiB
    nic_count: int
    spindle_use: int


class Bounds(Part, kw_only=True):
    """Smallest and largest instance allowed, per quantity."""

    min: Spec = Spec(
        memory_size=MiB(32), cpu_count=1, disk_count=0, disk_size=MiB(1), nic_count=0, spindle_use=0
    )
    max: Spec = Spec(
        memory_size=MiB(32768),
        cpu_count=8,
        disk_count=16,
        disk_size=MiB(1048576),
        nic_count=8,
        spindle_use=12,
    )


class InstancePolicy(Part, kw_only=True):
    """``minmax`` holds alternatives: an instance has to fit one of them."""

    minmax: tuple[Bounds, ...] = (Bounds(),)
    std: Spec = Spec(
        memory_size=MiB(128),
        cpu_count=1,
        disk_count=1,
        disk_size=MiB(1024),
        nic_count=1,
        spindle_use=1,
    )
    disk_templates: tuple[str, ...] = tuple(sorted(map(str, DiskTemplate)))
    vcpu_ratio: float = 4.0
    spindle_ratio: float = 32.0


class PolicyLayer(Part, kw_only=True, omit_defaults=True):
    """What a group sets of its policy; None: as the cluster has it. ``std`` is the cluster's."""

    minmax: tuple[Bounds, ...] | None = None
    disk_templates: tuple[str, ...] | None = None
    vcpu_ratio: float | None = None
    spindle_ratio: float | None = None

    def given(self) -> dict[str, Any]:
        """Return what it sets, by the names of the policy's fields."""
        values = ((name, getattr(self, name)) for name in FIELDS)
        return {name: value for name, value in values if value is not None}

    def over(self, policy: InstancePolicy) -> InstancePolicy:
        return replace(policy, **self.given())


FIELDS = ("minmax", "disk_templates", "vcpu_ratio", "spindle_ratio")
_STANDARD = "std"


def edited_layer(present: PolicyLayer | None, wire: Mapping[str, Any]) -> PolicyLayer | None:
    """Return a group's layer with what a client gives; ``default`` takes something away.

    Args:
        present: as it is.
        wire: as Ganeti writes it, with dashes in its keys.

    Returns:
        None if nothing is set any more.

    Raises:
        InvalidRequest: it is no policy, or one that allows nothing.
    """
    given = _underscored(wire)
    _check_names(given, FIELDS, "a group")
    layer = _read(given, "the group")
    values = (present or PolicyLayer()).given() | dict.fromkeys(given) | layer.given()
    changed = replace(present or PolicyLayer(), **values)
    return changed if changed.given() else None


def edited_policy(present: InstancePolicy, wire: Mapping[str, Any]) -> InstancePolicy:
    """Return the cluster's policy with what a client gives; ``default`` stands for our own.

    Args:
        present: as it is.
        wire: as Ganeti writes it, with dashes in its keys.

    Raises:
        InvalidRequest: it is no policy, or one that allows nothing, or not what is standard.
    """
    given = _underscored(wire)
    _check_names(given, (*FIELDS, _STANDARD), "the cluster")
    standard = given.pop(_STANDARD, None)
    values = {name: getattr(InstancePolicy(), name) for name in given}
    values |= _read(given, "the cluster").given()
    if standard == DEFAULT:
        values[_STANDARD] = InstancePolicy().std
    elif standard is not None:
        values[_STANDARD] = from_builtins(standard, Spec, what="the standard size of instances")
    changed = replace(present, **values)
    if not any(_is_within(changed.std, bounds) for bounds in changed.minmax):
        raise InvalidRequest("The standard size of instances is within none of the bounds.")
    return changed


def _is_within(spec: Spec, bounds: Bounds) -> bool:
    least, size, most = (asdict(each) for each in (bounds.min, spec, bounds.max))
    return all(least[name] <= size[name] <= most[name] for name in _sizes())


def _check_names(given: Mapping[str, Any], known: Iterable[str], whose: str) -> None:
    if unknown := given.keys() - set(known):
        raise InvalidRequest(
            f"The policy of {whose} has no “{sorted(unknown)[0].replace('_', '-')}”; it has "
            f"{', '.join(name.replace('_', '-') for name in known)}."
        )


def _read(given: Mapping[str, Any], whose: str) -> PolicyLayer:
    kept = {name: value for name, value in given.items() if value not in (DEFAULT, None)}
    layer = from_builtins(kept, PolicyLayer, what=f"the policy of {whose}")
    _check(layer)
    return layer


def _sizes() -> Iterator[str]:
    return (name for name in Spec.__struct_fields__ if name != "unknown")


def wire_policy(policy: InstancePolicy | Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy, or what is set of one, as Ganeti writes it: with dashes in its keys."""
    wire: dict[str, Any] = _dashed(to_builtins(policy))
    return wire


def _dashed(value: Any) -> Any:
    if isinstance(value, dict):
        known = ((key, inner) for key, inner in value.items() if key != UNKNOWN)
        return {key.replace("_", "-"): _dashed(inner) for key, inner in known}
    return [_dashed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _underscored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key).replace("-", "_"): _underscored(inner) for key, inner in value.items()}
    return [_underscored(inner) for inner in value] if isinstance(value, list | tuple) else value


def _check(layer: PolicyLayer) -> None:
    for name in ("vcpu_ratio", "spindle_ratio"):
        ratio = getattr(layer, name)
        if ratio is not None and not 0 < ratio <= LARGEST_COUNT:
            raise InvalidRequest(f"{name.replace('_', '-')} is a number above 0, not {ratio:g}.")
    if layer.disk_templates is not None:
        unknown = [each for each in layer.disk_templates if each not in list(DiskTemplate)]
        if unknown or not layer.disk_templates:
            raise InvalidRequest(
                f"disk-templates names at least one of {', '.join(DiskTemplate)}"
                f"{f', and not “{unknown[0]}”' if unknown else ''}."
            )
    if layer.minmax is not None and not layer.minmax:
        raise InvalidRequest("A policy without bounds would allow everything: give some.")
    for bounds in layer.minmax or ():
        _check_bounds(asdict(bounds.min), asdict(bounds.max))


def _check_bounds(least: dict[str, Any], most: dict[str, Any]) -> None:
    for name in _sizes():
        if not 0 <= least[name] <= most[name] <= LARGEST_COUNT:
            raise InvalidRequest(
                f"The bounds of {name.replace('_', '-')} are {least[name]} and {most[name]}: the "
                "lower one is at least 0, and not above the upper one."
            )
