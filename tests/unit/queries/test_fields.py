"""Fields are called, titled and described as Ganeti's clients know them.

``fields.json`` was generated from Ganeti 3.1's own library: kind of object -> field ->
title, kind, text; N stands for the number of a device.
"""

import json
import re
from pathlib import Path

import pytest

from coordinator.queries.query import query_fields
from coordinator.queries.subject import SUBJECTS

GANETI = json.loads(Path(__file__).with_name("fields.json").read_text())
OURS = {
    "job": {"opfailure", "waits"},
    "instance": {
        "disk.allocated",
        "disk.findings",
        "disk.snapshots",
        "guest_addresses",
        "guest_interfaces",
        "guest_state",
        "hv/accelerator",
        "hv/firmware",
        "hv/rng",
        "hv/tpm",
        "last_known",
        "expires",
        "maybe_on",
        "mirror_faulty",
        "mirror_news",
        "mirror_state",
    },
    "node": {"key", "last_known", "port", "silent_for"},
}


@pytest.mark.parametrize("what", SUBJECTS)
def test_fields_are_ganetis(what: str) -> None:
    for field in SUBJECTS[what].fields.values():
        name = re.sub(r"/\d+$", "/N", field.name)
        if name in OURS.get(what, ()):
            continue
        title, kind, doc = GANETI[what][name]
        ours = re.sub(r"\d+(st|nd|rd|th)", "Nth", field.doc) if name.endswith("/N") else field.doc
        assert (re.sub(r"/\d+$", "/N", field.title), field.kind, ours) == (title, kind, doc)


def test_no_field_of_ganeti_is_forgotten_but_parameters_we_do_not_have() -> None:
    for what, subject in SUBJECTS.items():
        ours = {re.sub(r"/\d+$", "/N", name) for name in subject.fields}
        missing = GANETI[what].keys() - ours
        assert all(name.startswith(("hv/", "ndp/ovs")) for name in missing)


def test_fields_can_be_asked_about() -> None:
    told = query_fields("lock", None)["fields"]
    assert [field["name"] for field in told] == ["mode", "name", "owner", "pending"]
    (only,) = query_fields("node", ["mfree"])["fields"]
    assert only == {
        "name": "mfree", "title": "MFree", "kind": "unit",
        "doc": "Memory available for instance allocations",
    }  # fmt: skip
