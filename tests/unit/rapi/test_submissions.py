"""A request becomes the parameters that Ganeti's interface makes of it."""

from http import HTTPStatus
from typing import Any

import pytest

from coordinator.rapi.call import Call, parse_query
from coordinator.rapi.failures import Refusal
from coordinator.rapi.routes import Router


def parameters(method: str, address: str, body: Any = None) -> dict[str, Any]:
    path, _, query = address.partition("?")
    route, named = Router().find(method, path)
    asked = Call(method, path, named, parse_query(query), body, "alice", "192.0.2.9")
    return route.takes.parameters(asked)


NEW = {"__version__": 1, "name": "web1", "os": "debian", "disks": []}


@pytest.mark.parametrize(
    ("method", "address", "body", "expected"),
    [
        ("POST", "/2/instances?dry-run=1", NEW,
         {"instance_name": "web1", "os_type": "debian", "disks": [], "dry_run": True}),
        ("POST", "/2/instances", {"__version__": 1, "hvparams": {"usb_devices": "a b"}},
         {"hvparams": {"usb_devices": "a,b"}}),
        ("POST", "/2/instances-multi-alloc", {"instances": [{"name": "a", "os": "b"}]},
         {"instances": [{"instance_name": "a", "os_type": "b"}]}),
        ("DELETE", "/2/instances/web1", None, {"instance_name": "web1"}),
        ("POST", "/2/instances/web1/reboot", None,
         {"instance_name": "web1", "reboot_type": "hard"}),
        ("POST", "/2/instances/web1/reboot?type=soft&ignore_secondaries=0", {},
         {"instance_name": "web1", "reboot_type": "soft", "ignore_secondaries": False}),
        ("POST", "/2/instances/web1/replace-disks?mode=replace_new_secondary&disks=0,2", None,
         {"instance_name": "web1", "mode": "replace_new_secondary", "disks": [0, 2]}),
        ("POST", "/2/instances/web1/replace-disks", {"mode": "replace_auto", "disks": [1]},
         {"instance_name": "web1", "mode": "replace_auto", "disks": [1]}),
        ("POST", "/2/instances/web1/disk/3/grow", {"amount": 64},
         {"instance_name": "web1", "disk": 3, "amount": 64}),
        ("PUT", "/2/instances/web1/startup?force=1&no_remember=1", None,
         {"instance_name": "web1", "force": True, "no_remember": True}),
        ("PUT", "/2/instances/web1/modify", {"custom_beparams": {"vcpus": 2}},
         {"instance_name": "web1", "beparams": {"vcpus": 2}}),
        ("PUT", "/2/instances/web1/export", {"mode": "local", "destination": "beta"},
         {"instance_name": "web1", "mode": "local", "target_node": "beta"}),
        ("PUT", "/2/instances/web1/tags?tag=a&tag=b", None,
         {"kind": "instance", "name": "web1", "tags": ["a", "b"]}),
        ("DELETE", "/2/tags?tag=a", None, {"kind": "cluster", "tags": ["a"]}),
        ("PUT", "/2/groups/g/tags?tag=a", None,
         {"kind": "nodegroup", "name": "g", "tags": ["a"]}),
        ("PUT", "/2/nodes/beta/role?force=1&auto-promote=1", "drained",
         {"node_name": "beta", "drained": True, "force": True, "auto_promote": True}),
        ("PUT", "/2/nodes/beta/role", "regular",
         {"node_name": "beta", "master_candidate": False, "offline": False, "drained": False}),
        ("POST", "/2/nodes/beta/migrate?live=0", None, {"node_name": "beta", "mode": "non-live"}),
        ("POST", "/2/nodes/beta/migrate", {"mode": "live"}, {"node_name": "beta", "mode": "live"}),
        ("GET", "/2/nodes/beta/storage?storage_type=lvm-vg&output_fields=name,size", None,
         {"nodes": ["beta"], "storage_type": "lvm-vg", "output_fields": ["name", "size"]}),
        ("PUT", "/2/nodes/beta/storage/modify?storage_type=lvm-pv&name=/dev/x&allocatable=0", None,
         {"node_name": "beta", "storage_type": "lvm-pv", "name": "/dev/x",
          "changes": {"allocatable": False}}),
        ("PUT", "/2/groups/g/modify", {"custom_ndparams": {"oob_program": "x"}},
         {"group_name": "g", "ndparams": {"oob_program": "x"}}),
        ("PUT", "/2/groups/g/assign-nodes?force=1", {"nodes": ["beta"]},
         {"group_name": "g", "nodes": ["beta"], "force": True}),
        ("POST", "/2/groups", {"name": "g"}, {"group_name": "g"}),
        ("POST", "/2/nodes/beta/powercycle?force=1", None, {"node_name": "beta", "force": True}),
    ],
)  # fmt: skip
def test_parameters_are_those_that_ganeti_would_submit(
    method: str, address: str, body: Any, expected: dict[str, Any]
) -> None:
    assert parameters(method, address, body) == expected


@pytest.mark.parametrize(
    ("method", "address", "body", "said"),
    [
        ("POST", "/2/instances", {"name": "web1"}, "version 0 is no longer supported"),
        ("POST", "/2/instances", {"__version__": 2}, "Unsupported request data version 2"),
        ("POST", "/2/instances", [], "Type is 'list', but 'dict' is expected"),
        ("POST", "/2/instances", NEW | {"os_type": "x"}, "both are specified"),
        ("POST", "/2/instances-multi-alloc", {}, "'instances'"),
        ("POST", "/2/instances-multi-alloc", {"instances": [1]}, "'instances'"),
        ("DELETE", "/2/instances/web1", {"instance_name": "x"}, "static parameters"),
        ("DELETE", "/2/instances/web1?dry-run=x", None, "'dry-run'"),
        ("POST", "/2/instances/web1/replace-disks", {"disks": "0,x"}, "Invalid disk index"),
        ("PUT", "/2/nodes/beta/role", "king", "Can't set 'king' role"),
        ("PUT", "/2/nodes/beta/role", {"role": "offline"}, "'str' is expected"),
        ("POST", "/2/nodes/beta/migrate?live=1&mode=live", None, "Only one of"),
        ("GET", "/2/nodes/beta/storage", None, "'output_fields'"),
        ("PUT", "/2/nodes/beta/storage/modify", None, "'name'"),
    ],
)
def test_what_is_not_of_its_form_is_refused(
    method: str, address: str, body: Any, said: str
) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        parameters(method, address, body)
    assert refused.value.status is HTTPStatus.BAD_REQUEST


def test_what_nobody_may_set_this_way_is_forbidden() -> None:
    with pytest.raises(Refusal) as refused:
        parameters("PUT", "/2/modify", {"compression_tools": []})
    assert refused.value.status is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("address", "body", "expected"),
    [
        ("", {"os": "debian", "start": False}, ["SHUTDOWN", "REINSTALL"]),
        ("?os=debian&nostartup=1", None, ["SHUTDOWN", "REINSTALL"]),
        ("", {}, ["SHUTDOWN", "REINSTALL", "STARTUP"]),
    ],
)
def test_an_instance_stands_still_while_it_is_installed_anew(
    address: str, body: Any, expected: list[str]
) -> None:
    path, _, query = f"/2/instances/web1/reinstall{address}".partition("?")
    route, named = Router().find("POST", path)
    call = Call("POST", path, named, parse_query(query), body, "alice", "192.0.2.9")
    operations = route.takes.operations(route.opcode, call)
    assert [each["OP_ID"] for each in operations] == [f"OP_INSTANCE_{name}" for name in expected]
    assert {each["instance_name"] for each in operations} == {"web1"}
    assert operations[1].get("os_type") == ("debian" if address or body else None)
