"""A running cluster as a snapshot, asked over the remote API; ours or a Ganeti's."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from common.errors import InvalidRequest, NodeFailure, Unreachable
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.luxi_source import snapshot_from_rows

PORT = 5080
_PATIENCE_S = 60.0  # to connect, and for each part of an answer
_LARGEST = 256 << 20  # bytes of one answer
_FILES = "file://"
_PATHS = ("/2/groups?bulk=1", "/2/nodes?bulk=1", "/2/instances?bulk=1", "/2/info")


def reported_by_rapi(address: str, *, authority: str | None = None) -> tuple[Snapshot, bool]:
    """The cluster as its nodes report it, and whether their hypervisor is KVM.

    Args:
        address: a host, whose usual port is then asked over HTTPS; a URL, which may name a
            user and a password; or ``file://DIRECTORY``, where answers were saved as
            groups.json, nodes.json, instances.json and info.json.
        authority: file of certificates that the server's has to come from; None does not check
            it, since clusters sign theirs themselves.

    Raises:
        GntError: the address is none, nobody answers there, or with something else.
    """
    if address.startswith(_FILES):
        answers = [_saved(address, what) for what in ("groups", "nodes", "instances", "info")]
    else:
        place = _place(address)
        with closing(_connection(place, authority)) as connection:
            answers = [_get(connection, place, path) for path in _PATHS]
    groups, nodes, instances, info = answers
    try:
        return snapshot_from_rows(
            info, groups, [_node(row) for row in nodes], [_instance(row) for row in instances]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NodeFailure(
            f"What {address.rpartition('@')[2]} answers is not what the remote API says of a"
            f" cluster: {type(error).__name__}: {error}."
        ) from error


def _saved(address: str, what: str) -> Any:
    path = Path(address.removeprefix(_FILES)) / f"{what}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{path}: is no JSON text ({error})") from error


def _place(address: str) -> SplitResult:
    if ":" not in address:
        address = f"https://{address}:{PORT}"
    elif "://" not in address:
        address = f"https://{address}"
    try:
        place = urlsplit(address)
        if place.scheme in {"http", "https"} and place.hostname and place.port != 0:
            return place
    except ValueError:
        pass
    raise InvalidRequest(f"“{address}” is no address of a remote API: give a host or a URL.")


def _connection(place: SplitResult, authority: str | None) -> http.client.HTTPConnection:
    host, port = place.hostname or "", place.port or PORT
    if place.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    context = _context(authority)
    return http.client.HTTPSConnection(host, port, timeout=_PATIENCE_S, context=context)


def _get(connection: http.client.HTTPConnection, place: SplitResult, path: str) -> Any:
    """Read one resource.

    Raises:
        GntError: there is no usable answer.
    """
    shown = f"{place.scheme}://{place.hostname}{path}"
    try:
        connection.request("GET", path, headers=_headers(place))
        answer = connection.getresponse()
        body = answer.read(_LARGEST + 1)
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(
            f"The certificate of {place.hostname} is not to be trusted: {error.verify_message}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"Cannot read {shown}: {type(error).__name__}: {error}.") from error
    if answer.status == 401:
        raise InvalidRequest(
            f"{place.hostname} wants a user: give https://USER:PASSWORD@HOST:{PORT}."
        )
    if answer.status != 200 or len(body) > _LARGEST:
        raise NodeFailure(f"Cannot read {shown}: {answer.status} {answer.reason}.")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NodeFailure(f"What {shown} answers is no JSON text: {error}.") from error


def _headers(place: SplitResult) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if place.username is not None:
        user, password = unquote(place.username), unquote(place.password or "")
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
    return headers


def _context(authority: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise InvalidRequest(f"Cannot use the certificates in {authority}: {error}.") from error
    return context


def _node(row: Mapping[str, Any]) -> dict[str, Any]:
    """A node's values under the names that LUXI has for them."""
    parameters = row.get("ndparams") or {}
    return {**row, **{f"ndp/{name}": value for name, value in parameters.items()}}


def _instance(row: Mapping[str, Any]) -> dict[str, Any]:
    """An instance's values likewise; its memory is what it really has, where that is known."""
    parameters = row.get("beparams") or {}
    memory = parameters.get("memory", parameters.get("maxmem"))
    if row.get("oper_ram") is not None:
        memory = row["oper_ram"]
    return {
        **row, **{f"be/{name}": value for name, value in parameters.items()}, "be/memory": memory
    }  # fmt: skip
