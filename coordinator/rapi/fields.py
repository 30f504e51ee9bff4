"""What Ganeti's REST interface tells of each kind of object.

Source: rlib2.py of Ganeti 3.0 and 3.1.
"""

from collections.abc import Mapping, Sequence

CLUSTER, GROUP, NETWORK, NODE = "cluster", "group", "network", "node"
INSTANCE, JOB = "instance", "job"

_COMMON = ("ctime", "mtime", "uuid", "serial_no", "tags")
# fmt: off
FIELDS: Mapping[str, Sequence[str]] = {
    CLUSTER: (),  # has its own form
    GROUP: (
        "alloc_policy", "name", "node_cnt", "node_list", "ipolicy", "custom_ipolicy",
        "diskparams", "custom_diskparams", "ndparams", "custom_ndparams", *_COMMON,
    ),
    NETWORK: (
        "name", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count",
        "reserved_count", "map", "group_list", "inst_list", "external_reservations", *_COMMON,
    ),
    NODE: (
        "name", "offline", "master_candidate", "drained", "dtotal", "dfree", "sptotal", "spfree",
        "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt", "ctotal", "cnos", "cnodes",
        "csockets", "pip", "sip", "role", "pinst_list", "sinst_list", "master_capable",
        "vm_capable", "ndparams", "group.uuid", *_COMMON,
    ),
    INSTANCE: (
        "name", "admin_state", "os", "pnode", "snodes", "disk_template", "nic.ips", "nic.macs",
        "nic.modes", "nic.uuids", "nic.names", "nic.links", "nic.networks", "nic.networks.names",
        "nic.bridges", "network_port", "disk.sizes", "disk.spindles", "disk_usage", "disk.uuids",
        "disk.names", "beparams", "hvparams", "oper_state", "oper_ram", "oper_vcpus", "status",
        "custom_hvparams", "custom_beparams", "custom_nicparams", "custom_osparams", *_COMMON,
    ),
    JOB: (
        "id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts",
        "oplog", "opresult",
    ),
}
# fmt: on
BRIEF: Mapping[str, Sequence[str]] = {JOB: FIELDS[JOB][:-2]}
"""What lists have, of kinds where it is less."""

FILTER: Sequence[str] = ("watermark", "priority", "predicates", "action", "reason_trail", "uuid")
