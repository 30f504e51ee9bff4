"""Parameters that do not fit their declarations: an older version may have let them in.

Each is told of where it is set. What lies above it counts with the default in its place.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from common.errors import InvalidRequest
from common.messages import Order
from common.model.cluster import Cluster
from common.model.disk_parameters import DISK_PARAMETERS, check_template
from common.model.hypervisors import HYPERVISORS, check_hypervisor
from common.model.instance import Instance
from common.model.master_address import check_address
from common.model.nic import Nic
from common.model.node import Node
from common.model.parameters import (
    OF_GROUPS_ALONE,
    Backend,
    Layer,
    NicMode,
    NicParameters,
    NodeParameters,
    complaints,
    sound,
)
from common.model.settings import bad_settings
from common.model.storage_directory import bad_directories
from common.names import InstanceId
from coordinator.checks.finding import Finding, Seen
from coordinator.disks.tpm import complaint, problem_of_state
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.state.config import Config

T = TypeVar("T")


class Bad(NamedTuple):
    """``kind`` and ``name`` are of the object at which it is set; ``message`` is a sentence."""

    kind: str
    name: str
    message: str
    code: str = "ECLUSTERCFG"


def bad_parameters(config: Config) -> Iterator[Bad]:
    """Yield all that do not fit, in the order cluster, groups, nodes, instances."""
    cluster = config.cluster
    for message in bad_of_cluster(cluster):
        yield Bad("cluster", cluster.name, message)
    for message in bad_directories(cluster):
        yield Bad("cluster", cluster.name, message, "ENODEFILESTORAGEPATHS")
    for group in config.sorted_groups():
        base = sound(NodeParameters, cluster.ndparams)
        yield from _bad("group", group.name, NodeParameters, base, group.ndparams)
        what = f"the disk parameters of {group.name}"
        for message in _of_disks(group.diskparams, cluster.diskparams, what):
            yield Bad("group", group.name, message)
    for node in config.sorted_nodes():
        yield from bad_of_node(config, node)
        if cluster.master_ip in (node.primary_ip, node.secondary_ip) and cluster.master_ip:
            message = (
                f"{cluster.master_ip} is the own address of {node.name}, and cannot go with the "
                "mastership."
            )
            yield Bad("cluster", cluster.name, message)
    bases = _Bases(cluster)
    for instance in config.sorted_instances():
        yield from _of_instance(config, instance, bases)


def bad_of_node(config: Config, node: Node) -> Iterator[Bad]:
    """Yield those of a node's own parameters that do not fit; it need not be in ``config``."""
    for name in sorted(OF_GROUPS_ALONE & node.ndparams.keys()):
        message = f"{name} is set for the cluster or for a group, not for {node.name} alone."
        yield Bad("node", node.name, message)
    if node.ndparams:
        group = config.groups.get(node.group)
        layers = (config.cluster.ndparams, group.ndparams if group else {})
        base = sound(NodeParameters, *layers)
        yield from _bad("node", node.name, NodeParameters, base, node.ndparams)


def bad_of_instance(config: Config, uuid: InstanceId) -> Iterator[Bad]:
    """Yield those of an instance's own parameters that do not fit, its nics' among them."""
    yield from _of_instance(config, config.instances[uuid], _Bases(config.cluster))


def bad_of_nics(config: Config, instance: Instance, nics: Iterable[Nic]) -> Iterator[Bad]:
    """Yield what does not go together in nics of an instance, which need not be in ``config``."""
    for number, nic in enumerate(nics):
        if not nic.ip and _mode(config, instance, nic) == NicMode.ROUTED:
            message = (
                f"Nic {number} of {instance.name} is routed, and has no address to which that "
                "leads."
            )
            yield Bad("instance", instance.name, message)


def check_parameters(found: Iterable[Bad], known: Iterable[Bad] = ()) -> None:
    """Refuse bad parameters, but for those that are ``known`` because they are stored.

    Raises:
        InvalidRequest: the first, and how many more there are.
    """
    stored = set(known)
    new = [bad for bad in found if bad not in stored]
    if new:
        raise InvalidRequest(" ".join([new[0].message, *_more(len(new) - 1)]))


def check_stored_parameters(seen: Seen) -> Iterator[Finding]:
    """Name parameters that do not fit, and say how each is put right."""
    for bad in bad_parameters(seen.config):
        message = f"{bad.message} Give it another value, or “default”."
        code = "EINSTANCEBADPARAMETER" if bad.kind == "instance" else bad.code
        yield Finding(code, bad.kind, bad.name, message)


class _Bases:
    """What lies below the layers of instances."""

    def __init__(self, cluster: Cluster) -> None:
        self.backend = sound(Backend, cluster.beparams)
        self.nic = sound(NicParameters, cluster.nicparams)
        self._cluster = cluster
        self._hypervisors: dict[tuple[str, str], Layer] = {}

    def hypervisor(self, instance: Instance) -> Layer:
        """Return what lies below an instance's hypervisor parameters, which is known by name."""
        key = name, os = instance.hypervisor, instance.os
        if key not in self._hypervisors:
            base = base_hvparams(self._cluster, name, os)
            self._hypervisors[key] = sound(HYPERVISORS[name], base)
        return self._hypervisors[key]


def bad_of_cluster(cluster: Cluster) -> Iterator[str]:
    """Say of each of the cluster's own parameters that does not fit why."""
    fields = {name: getattr(cluster, name) for name in cluster.__struct_fields__}
    for _, message in bad_settings(fields):
        yield message
    yield from _refusal(check_address, cluster)
    yield from _of_hypervisors(cluster.hvparams, {}, "the cluster's parameters")
    for system, layers in cluster.os_hvp.items():
        yield from _of_hypervisors(layers, cluster.hvparams, f"the parameters of {system}")
    yield from _of_disks(cluster.diskparams, {}, "the cluster's disk parameters")
    for kind, layer, what in (
        (Backend, cluster.beparams, "the cluster's backend parameters"),
        (NicParameters, cluster.nicparams, "the cluster's nic parameters"),
        (NodeParameters, cluster.ndparams, "the cluster's node parameters"),
    ):
        yield from complaints(kind, {}, layer, what=what)


def _of_hypervisors(own: dict[str, Layer], below: dict[str, Layer], what: str) -> Iterator[str]:
    for name, layer in own.items():
        if name in HYPERVISORS:
            base = sound(HYPERVISORS[name], below.get(name, {}))
            yield from complaints(HYPERVISORS[name], base, layer, what=f"{what} of {name}")
        else:
            yield from _refusal(check_hypervisor, name)


def _of_disks(own: dict[str, Layer], below: dict[str, Layer], what: str) -> Iterator[str]:
    for template, layer in own.items():
        if template not in DISK_PARAMETERS:
            yield from _refusal(check_template, template)
            continue
        kind = DISK_PARAMETERS[template]
        base = sound(kind, below.get(template, {}))
        yield from complaints(kind, base, layer, what=f"{what} ({template})")


def _of_instance(config: Config, instance: Instance, bases: _Bases) -> Iterator[Bad]:
    name = instance.name
    yield from _bad("instance", name, Backend, bases.backend, instance.beparams)
    nics = tuple(filter(None, map(config.nics.get, instance.nics)))
    for nic in nics:
        yield from _bad("instance", name, NicParameters, bases.nic, nic.nicparams)
    yield from bad_of_nics(config, instance, nics)
    if instance.hypervisor not in HYPERVISORS:
        yield from (
            Bad("instance", name, text) for text in _refusal(check_hypervisor, instance.hypervisor)
        )
        return
    kind = HYPERVISORS[instance.hypervisor]
    base = bases.hypervisor(instance)
    yield from _bad("instance", name, kind, base, instance.hvparams)
    if wanted := kind.disk_of_tpm(base | instance.hvparams):
        disks = tuple(filter(None, map(config.disks.get, instance.disks)))
        if problem := problem_of_state(wanted, disks):
            yield Bad("instance", name, complaint(name, wanted, problem))


def _mode(config: Config, instance: Instance, nic: Nic) -> object:
    """Return how a nic is plugged in, as far as that is said anywhere."""
    if instance.primary_node not in config.nodes:
        return None
    layers = config.nic_layers(nic, instance.primary_node)
    return ChainMap(*map(dict, reversed(layers))).get("mode")


def _bad(kind: str, name: str, declared: type[Order], base: Layer, own: Layer) -> Iterator[Bad]:
    if not own:
        return
    for message in complaints(declared, base, own, what=f"the parameters of {name}"):
        yield Bad(kind, name, message)


def _more(number: int) -> Iterator[str]:
    if number:
        yield f"There {'is one' if number == 1 else f'are {number}'} more like this."


def _refusal(check: Callable[[T], None], given: T) -> Iterator[str]:
    try:
        check(given)
    except InvalidRequest as error:
        yield error.message
