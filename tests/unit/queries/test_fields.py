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

# What only we have lists of has no fields of Ganeti's.
GANETI = {what: {} for what in SUBJECTS} | json.loads(
    Path(__file__).with_name("fields.json").read_text()
)
OF_OTHER_HYPERVISORS = {
    "blockdev_prefix", "bootloader_args", "bootloader_path", "cpu_cap", "cpu_weight", "cpuid",
    "device_model", "devices", "drop_capabilities", "extra_cgroups", "extra_config",
    "init_script", "num_ttys", "pae", "pci_pass", "startup_timeout", "use_bootloader",
    "vif_script", "vif_type", "viridian",
}  # fmt: skip
SWITCHES = {"ndp/ovs", "ndp/ovs_link", "ndp/ovs_name"}  # nodes have those that operators make
LEFT_OUT = {
    "instance": {f"hv/{name}" for name in OF_OTHER_HYPERVISORS},
    "group": SWITCHES,
    "node": SWITCHES,
}


@pytest.mark.parametrize("what", SUBJECTS)
def test_fields_are_ganetis(what: str) -> None:
    for field in SUBJECTS[what].fields.values():
        name = re.sub(r"/\d+$", "/N", field.name)
        if name not in GANETI.get(
            what, {}
        ):  # ours; that none of Ganeti's is called so is told below
            continue
        title, kind, doc = GANETI[what][name]
        ours = re.sub(r"\d+(st|nd|rd|th)", "Nth", field.doc) if name.endswith("/N") else field.doc
        assert (re.sub(r"/\d+$", "/N", field.title), field.kind, ours) == (title, kind, doc)


@pytest.mark.parametrize("what", SUBJECTS)
def test_no_field_of_ganeti_is_missing_or_called_otherwise(what: str) -> None:
    ours = {re.sub(r"/\d+$", "/N", name) for name in SUBJECTS[what].fields}
    assert GANETI[what].keys() - ours == LEFT_OUT.get(what, set())


def test_fields_can_be_asked_about() -> None:
    told = query_fields("lock", None)["fields"]
    assert [field["name"] for field in told] == ["mode", "name", "owner", "pending"]
    (only,) = query_fields("node", ["mfree"])["fields"]
    assert only == {
        "name": "mfree", "title": "MFree", "kind": "unit",
        "doc": "Memory available for instance allocations",
    }  # fmt: skip
