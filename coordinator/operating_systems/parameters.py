"""Parameters of operating systems: the cluster's, an instance's, and those nobody is shown.

Public ones stand in the records of the cluster and of instances. *Private* ones are kept among the
secrets of the state, so that no list, no export and no job has them; *secret* ones are kept nowhere
and live as long as the coordinator that was told them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from common.errors import InvalidRequest
from common.messages import from_json, to_json
from common.model.cluster import Cluster
from common.model.os_name import check_os_parameters, read_os_name
from common.model.secret import Secret
from common.names import InstanceId
from coordinator.state.rows import Delete, Put
from coordinator.state.state import State

DEFAULT = "default"  # takes a value away

Values = Mapping[str, str]


def layers(os: str) -> tuple[str, ...]:
    """Return under which names parameters are set for an operating system, the strongest last."""
    name = read_os_name(os)
    return (name.definition, str(name)) if name.variant else (name.definition,)


def merged_parameters(cluster: Cluster, os: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Lay an instance's ``own`` over what the cluster has for its system, all as it is stored."""
    merged: dict[str, Any] = {}
    for layer in dict.fromkeys((os.partition("+")[0], os)):
        merged |= cluster.osparams.get(layer, {})
    return {**merged, **own}


def public_parameters(cluster: Cluster, os: str, own: Mapping[str, Any]) -> dict[str, str]:
    """Return those of an instance, as scripts get them; ``own`` are its own.

    Raises:
        InvalidRequest: one of them cannot be handed to a script.
    """
    read = read_parameters(own, what="the parameters of its operating system")
    return merged_parameters(cluster, os, read)


def private_parameters(state: State, os: str, instance: InstanceId | None) -> dict[str, str]:
    """Return what is kept for an operating system, and of it for an instance."""
    filled: dict[str, str] = {}
    for layer in layers(os):
        filled |= _kept(state, _of_cluster(layer))
    return filled | (_kept(state, _of_instance(instance, os)) if instance else {})


def keep_for_cluster(state: State, os: str, given: Mapping[str, Any]) -> list[Put | Delete]:
    """Return what keeps private parameters of an operating system; “default” takes one away."""
    return _keep(_of_cluster(os), _kept(state, _of_cluster(os)), given)


def keep_for_instance(
    state: State, instance: InstanceId, os: str, given: Mapping[str, Any]
) -> list[Put | Delete]:
    """Return what keeps private parameters of an instance."""
    key = _of_instance(instance, os)
    return _keep(key, _kept(state, key), given)


def forget_instance(state: State, instance: InstanceId) -> Iterator[Delete]:
    """Yield what forgets all private parameters of an instance."""
    prefix = _of_instance(instance, "")
    yield from (Delete(each) for key, each in state.secrets.items() if key.startswith(prefix))


def read_parameters(given: Mapping[str, Any], *, what: str) -> dict[str, str]:
    """Return parameters as texts, as scripts get them.

    Raises:
        InvalidRequest: a name or value that cannot be handed to a script.
    """
    values = {str(name): _text(str(name), value, what) for name, value in given.items()}
    check_os_parameters(values, what=what)
    return values


def edited(present: Values, given: Mapping[str, Any], *, what: str) -> dict[str, str]:
    """Lay values over the present ones; “default” takes one away."""
    merged = {**present, **read_parameters(given, what=what)}
    return {name: merged[name] for name in sorted(merged) if merged[name] != DEFAULT}


def _text(name: str, value: Any, what: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidRequest(f"The parameter {name} in {what} is no text.", parameter=name)


def _of_cluster(os: str) -> str:
    return f"os-parameters/cluster/{os}"


def _of_instance(instance: InstanceId, os: str) -> str:
    return f"os-parameters/{instance}/{read_os_name(os).definition if os else ''}"


def _kept(state: State, key: str) -> dict[str, str]:
    found = state.secrets.get(key)
    return from_json(found.value, dict[str, str], what="private parameters") if found else {}


def _keep(key: str, present: Values, given: Mapping[str, Any]) -> list[Put | Delete]:
    values = edited(present, given, what="the private parameters")
    if values == present:
        return []
    secret = Secret(id=key, value=to_json(values).decode())
    return [Put(secret) if values else Delete(secret)]
