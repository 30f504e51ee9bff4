"""Parameters that are set for the cluster and refined for one object.

Each layer is a plain dict that holds only what it sets; ``filled`` lays them over one
another and over the defaults declared here, and checks the result. What a node receives
is always filled: nodes know no defaults.

Whatever is about to be stored is checked by the declarations here, wherever it is given, so a
parameter is right in every layer. A state may hold values that another version took for right:
those are told of (``complaints``), and whoever only looks sees the default in their place
(``settled``).
"""

import re
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from common.errors import InvalidRequest
from common.messages import Order, from_builtins, to_builtins
from common.names import MiB
from common.vlans import parse_vlans

P = TypeVar("P", bound=Order)
Layer = dict[str, Any]

DEFAULT = "default"  # as a value: take it away from this layer

OF_GROUPS_ALONE = frozenset({"exclusive_storage"})
"""Node parameters that all nodes of a group have alike; Ganeti's ``NDC_GLOBALS``."""

Processors = Annotated[int, Meta(ge=1, le=2**10)]
Spindles = Annotated[int, Meta(ge=0, le=2**10)]
_LINK = re.compile(r"[A-Za-z0-9._-]{1,15}")  # of an interface (IFNAMSIZ), or a routing table


class Backend(Order):
    """``beparams``: what a guest is given; the manual says the same.

    Attributes:
        maxmem: Memory that it is given.
        minmem: Memory that it uses at least: it is given maxmem, and can be asked to use less while
            it runs.
        vcpus: Number of processors.
        auto_balance: Whether room is kept for it where it is mirrored.
        spindle_use: How much it counts among those that share disks.
        always_failover: Ganeti's; moves are made as they are asked for.
    """

    maxmem: MiB = MiB(128)
    minmem: MiB = MiB(128)
    vcpus: Processors = 1
    auto_balance: bool = True
    spindle_use: Spindles = 1
    always_failover: bool = False

    def __post_init__(self) -> None:
        if self.minmem < 1:
            raise ValueError(f"minmem is the least memory, at least 1 MiB, not {self.minmem}")
        if self.minmem > self.maxmem:
            raise ValueError(f"minmem, {self.minmem} MiB, is more than maxmem, {self.maxmem} MiB")


class NicMode(StrEnum):
    """How nodes can plug a nic in."""

    BRIDGED = "bridged"
    ROUTED = "routed"
    OPENVSWITCH = "openvswitch"


class NicParameters(Order):
    """``nicparams``: how a nic is plugged in."""

    mode: NicMode = NicMode.BRIDGED
    link: str = "br0"
    vlan: str = ""  # as .10, :10:20 or .10:20
    guarded: bool = True  # ours: the guest can send with the nic's own addresses only

    def __post_init__(self) -> None:
        parse_vlans(self.vlan)
        if self.vlan and self.mode is NicMode.ROUTED:
            raise ValueError("a routed nic is in no VLAN: leave vlan empty, or give another mode")
        if not _LINK.fullmatch(self.link):
            raise ValueError(f"“{self.link}” cannot be the name of a link")


class NodeParameters(Order):
    """``ndparams``: properties of a node, settable for the cluster, a group, or most for a node.

    With ``exclusive_storage`` no physical volume of an instance's disks is another one's, too.
    """

    cpu_speed: Annotated[float, Meta(gt=0, le=2**10)] = 1.0
    exclusive_storage: bool = False
    oob_program: str = ""
    spindle_count: Spindles = 1
    ssh_port: Annotated[int, Meta(ge=1, le=2**16 - 1)] = 22

    def __post_init__(self) -> None:
        if self.oob_program and not self.oob_program.startswith("/"):
            raise ValueError(f"oob_program is a path from /, not “{self.oob_program}”")


def filled(kind: type[P], *layers: Layer, what: str) -> P:
    """Lay ``layers`` over the defaults of ``kind``, later ones winning.

    Args:
        kind: the parameter class.
        layers: from the most general to the most specific.
        what: for the error message: "the hypervisor parameters of web1".

    Raises:
        InvalidRequest: a parameter is unknown or of the wrong type.
    """
    return from_builtins(_merged(layers), kind, what=what)


def settled(kind: type[P], *layers: Layer) -> P:
    """Lay layers over one another as ``filled`` does, leaving out what does not fit.

    For whoever looks, and must see the rest of the cluster though one value in it is bad.
    """
    merged = _merged(layers)
    try:
        return msgspec.convert(merged, kind)
    except (msgspec.ValidationError, RecursionError):
        sound: Layer = {}
        for layer in layers:
            sound = _with_what_fits(kind, sound, layer)
        return msgspec.convert(sound, kind)


def sound(kind: type[Order], *layers: Layer) -> Layer:
    """Return as one layer what ``settled`` makes of several.

    For what lies below an object's own layer: a bad value of the cluster is told of as the
    cluster's, and does not keep others from being changed or started.
    """
    layer: Layer = to_builtins(settled(kind, *layers))
    return layer


def complaints(kind: type[Order], base: Layer, layer: Layer, *, what: str) -> tuple[str, ...]:
    """Say of each value of ``layer`` that does not fit why, as ``filled`` would; or of them all.

    Args:
        kind: the parameter class.
        base: what lies below, and fits.
        layer: what is looked at.
        what: as for ``filled``.
    """
    if not (together := _complaint(kind, base, layer, what=what)):
        return ()
    fitting = _with_what_fits(kind, base, layer)  # a value may fit beside another one only
    left = (name for name in layer if name not in fitting or fitting[name] != layer[name])
    single = {_complaint(kind, fitting, {name: layer[name]}, what=what) for name in left}
    return (together, *sorted(single - {together, ""}))


def edited(present: Layer, given: Layer) -> Layer:
    """Return a layer with the given values; ``default`` takes one away.

    Sorted by name, so that equal layers are equal texts.
    """
    after = present | given
    return {name: after[name] for name in sorted(after) if after[name] not in (DEFAULT, None)}


def edited_of_nodes(present: Layer, given: Layer) -> Layer:
    """Edit node parameters, whose values are texts where Ganeti's commands send them."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(NodeParameters)}
    return edited(present, {name: _read(value, kinds.get(name)) for name, value in given.items()})


def edited_layers(present: dict[str, Layer], given: dict[str, Layer]) -> dict[str, Layer]:
    """Edit layers that are kept by name, as those of hypervisors are; empty ones are dropped."""
    after = {
        name: edited(present.get(name, {}), given.get(name, {}))
        for name in sorted(present.keys() | given.keys())
    }
    return {name: layer for name, layer in after.items() if layer}


def _read(value: Any, kind: Any) -> Any:
    """Return what a text says, if it is to be a number or a truth; what fits not stays as it is."""
    if not isinstance(value, str) or kind is None:
        return value
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return value


def _complaint(kind: type[Order], *layers: Layer, what: str) -> str:
    try:
        filled(kind, *layers, what=what)
    except InvalidRequest as error:
        return error.message
    return ""


def _merged(layers: tuple[Layer, ...]) -> Layer:
    merged: Layer = {}
    for layer in layers:
        merged |= layer
    return merged


def _with_what_fits(kind: type[Order], base: Layer, layer: Layer) -> Layer:
    """Lay one layer over another, value by value, until no other one fits."""
    left = dict(layer)
    while fitting := [name for name in left if _fits(kind, base | {name: left[name]})]:
        base = base | {fitting[0]: left.pop(fitting[0])}
    return base


def _fits(kind: type[Order], layer: Layer) -> bool:
    try:
        msgspec.convert(layer, kind)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
