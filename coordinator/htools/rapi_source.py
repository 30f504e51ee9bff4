"""A running cluster as a snapshot, asked over the remote API; ours or a Ganeti's."""

import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import SplitResult, unquote, urlsplit

from common.errors import InvalidRequest, NodeFailure, Unreachable
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.luxi_source import snapshot_from_rows

PORT = 5080
_PATIENCE_S = 60.0  # to connect, and for each part of an answer
_LARGEST = 256 << 20  # bytes of one answer
_FILES = "file://"


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
        with _Rapi(_place(address), authority) as rapi:
            answers = [rapi.get(f"/2/{what}?bulk=1") for what in ("groups", "nodes", "instances")]
            answers.append(rapi.get("/2/info"))
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


class _Rapi:
    """One connection."""

    def __init__(self, place: SplitResult, authority: str | None) -> None:
        self._place = place
        host, port = place.hostname or "", place.port
        self._connection: http.client.HTTPConnection
        if place.scheme == "http":
            self._connection = http.client.HTTPConnection(host, port or PORT, timeout=_PATIENCE_S)
        else:
            self._connection = http.client.HTTPSConnection(
                host, port or PORT, timeout=_PATIENCE_S, context=_context(authority)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str) -> Any:
        """Read one resource.

        Raises:
            GntError: there is no usable answer.
        """
        shown = f"{self._place.scheme}://{self._place.hostname}{path}"
        connection = self._connection
        try:
            connection.request("GET", path, headers=self._headers())
            answer = connection.getresponse()
            body = answer.read(_LARGEST + 1)
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(
                f"The certificate of {self._place.hostname} is not to be trusted:"
                f" {error.verify_message}."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"Cannot read {shown}: {type(error).__name__}: {error}.") from error
        if answer.status == 401:
            raise InvalidRequest(
                f"{self._place.hostname} wants a user: give https://USER:PASSWORD@HOST:{PORT}."
            )
        if answer.status != 200 or len(body) > _LARGEST:
            raise NodeFailure(f"Cannot read {shown}: {answer.status} {answer.reason}.")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NodeFailure(f"What {shown} answers is no JSON text: {error}.") from error

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self._place.username is not None:
            user, password = unquote(self._place.username), unquote(self._place.password or "")
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
