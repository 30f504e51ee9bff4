"""All opcodes of Ganeti 3.0, with their parameters and what these are when nobody gives them.

Facts, not what we can do: of an opcode that is one of our operations, the class says which of its
parameters are obeyed, and ``parameters.py`` what becomes of the others.

Source: Debian's Ganeti 3.0.2; a test holds the table against what that package tells of itself.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec


class Parameter(NamedTuple):
    """``default`` means nothing where a parameter is required."""

    is_required: bool
    default: Any = None


@cache  # few ask: only what is not ours is looked up here
def opcodes() -> Mapping[str, Mapping[str, Parameter]]:
    """Return the parameters of each opcode, but for those that all opcodes have."""
    entries = _TABLE.replace("\n  ", " ").splitlines()
    return {opcode: dict(map(_read, words)) for opcode, *words in map(str.split, entries)}


def _read(word: str) -> tuple[str, Parameter]:
    name, given, default = word.partition("=")
    if not given:
        return name, Parameter(is_required=True)
    return name, Parameter(is_required=False, default=msgspec.json.decode(default))


# An opcode a line, longer ones indented from the second line on: NAME is required, NAME=VALUE has
# this default, as JSON without blanks.
_TABLE = """\
OP_BACKUP_EXPORT instance_name instance_uuid=null compress="none" shutdown_timeout=120 target_node
  target_node_uuid=null shutdown=true remove_instance=false ignore_remove_failures=false
  mode="local" x509_key_name=null destination_x509_ca=null zero_free_space=false
  zeroing_timeout_fixed=null zeroing_timeout_per_mib=null long_sleep=false
OP_BACKUP_PREPARE instance_name instance_uuid=null mode
OP_BACKUP_REMOVE instance_name instance_uuid=null
OP_CLUSTER_ACTIVATE_MASTER_IP
OP_CLUSTER_CONFIG_QUERY output_fields
OP_CLUSTER_DEACTIVATE_MASTER_IP
OP_CLUSTER_DESTROY
OP_CLUSTER_POST_INIT
OP_CLUSTER_QUERY
OP_CLUSTER_REDIST_CONF
OP_CLUSTER_RENAME name
OP_CLUSTER_RENEW_CRYPTO node_certificates=false renew_ssh_keys=false ssh_key_type=null
  ssh_key_bits=null verbose=false debug=false
OP_CLUSTER_REPAIR_DISK_SIZES instances=[]
OP_CLUSTER_SET_PARAMS force=false hv_state=null disk_state=null vg_name=null
  enabled_hypervisors=null hvparams=null beparams=null os_hvp=null osparams=null
  osparams_private_cluster=null diskparams=null candidate_pool_size=null max_running_jobs=null
  max_tracked_jobs=null uid_pool=null add_uids=null remove_uids=null maintain_node_health=null
  prealloc_wipe_disks=null nicparams=null ndparams=null ipolicy=null drbd_helper=null
  default_iallocator=null default_iallocator_params=null mac_prefix=null master_netdev=null
  master_netmask=null reserved_lvs=null hidden_os=null blacklisted_os=null
  use_external_mip_script=null enabled_disk_templates=null modify_etc_hosts=null
  file_storage_dir=null shared_file_storage_dir=null gluster_storage_dir=null install_image=null
  instance_communication_network=null zeroing_image=null compression_tools=null
  enabled_user_shutdown=null enabled_data_collectors=null data_collector_interval=null
OP_CLUSTER_VERIFY debug_simulate_errors=false error_codes=false skip_checks=[] ignore_errors=[]
  verbose=false group_name=null verify_clutter=false
OP_CLUSTER_VERIFY_CONFIG debug_simulate_errors=false error_codes=false ignore_errors=[]
  verbose=false
OP_CLUSTER_VERIFY_DISKS group_name=null
OP_CLUSTER_VERIFY_GROUP group_name debug_simulate_errors=false error_codes=false skip_checks=[]
  ignore_errors=[] verbose=false verify_clutter=false
OP_EXT_STORAGE_DIAGNOSE output_fields names=[]
OP_GROUP_ADD group_name alloc_policy=null ndparams=null diskparams=null hv_state=null
  disk_state=null ipolicy=null
OP_GROUP_ASSIGN_NODES group_name force=false nodes node_uuids=null
OP_GROUP_EVACUATE group_name early_release=false iallocator=null target_groups=null
  sequential=false force_failover=false
OP_GROUP_REMOVE group_name
OP_GROUP_RENAME group_name new_name
OP_GROUP_SET_PARAMS group_name alloc_policy=null ndparams=null diskparams=null hv_state=null
  disk_state=null ipolicy=null
OP_GROUP_VERIFY_DISKS group_name
OP_INSTANCE_ACTIVATE_DISKS instance_name instance_uuid=null ignore_size=false wait_for_sync=false
OP_INSTANCE_CHANGE_GROUP instance_name instance_uuid=null early_release=false iallocator=null
  target_groups=null
OP_INSTANCE_CONSOLE instance_name instance_uuid=null
OP_INSTANCE_CREATE instance_name force_variant=false wait_for_sync=true name_check=true
  ignore_ipolicy=false opportunistic_locking=false beparams={} disks disk_template=null
  group_name=null file_driver=null file_storage_dir=null hvparams={} hypervisor=null
  iallocator=null identify_defaults=false ip_check=true conflicts_check=true mode nics
  no_install=null osparams={} osparams_private=null osparams_secret=null os_type=null pnode=null
  pnode_uuid=null snode=null snode_uuid=null source_handshake=null source_instance_name=null
  source_shutdown_timeout=120 source_x509_ca=null src_node=null src_node_uuid=null src_path=null
  compress="none" start=true forthcoming=false commit=false tags=[] instance_communication=false
  helper_startup_timeout=null helper_shutdown_timeout=null
OP_INSTANCE_DEACTIVATE_DISKS instance_name instance_uuid=null force=false
OP_INSTANCE_FAILOVER instance_name instance_uuid=null shutdown_timeout=120
  ignore_consistency=false target_node=null target_node_uuid=null ignore_ipolicy=false
  cleanup=false iallocator=null
OP_INSTANCE_GROW_DISK instance_name instance_uuid=null wait_for_sync=true disk amount
  absolute=false ignore_ipolicy=false
OP_INSTANCE_MIGRATE instance_name instance_uuid=null mode=null live=null target_node=null
  target_node_uuid=null allow_runtime_changes=true ignore_ipolicy=false cleanup=false
  iallocator=null allow_failover=false ignore_hvversions=false
OP_INSTANCE_MOVE instance_name instance_uuid=null shutdown_timeout=120 ignore_ipolicy=false
  target_node target_node_uuid=null compress="none" ignore_consistency=false
OP_INSTANCE_MULTI_ALLOC opportunistic_locking=false iallocator=null instances=[]
OP_INSTANCE_QUERY_DATA use_locking=false instances=[] static=false
OP_INSTANCE_REBOOT instance_name instance_uuid=null shutdown_timeout=120 ignore_secondaries=false
  reboot_type
OP_INSTANCE_RECREATE_DISKS instance_name instance_uuid=null disks=[] nodes=[] node_uuids=null
  iallocator=null
OP_INSTANCE_REINSTALL instance_name instance_uuid=null force_variant=false os_type=null
  osparams=null osparams_private=null osparams_secret=null
OP_INSTANCE_REMOVE instance_name instance_uuid=null shutdown_timeout=120 ignore_failures=false
OP_INSTANCE_RENAME instance_name instance_uuid=null new_name name_check=true ip_check=true
OP_INSTANCE_REPLACE_DISKS instance_name instance_uuid=null early_release=false
  ignore_ipolicy=false mode disks=[] remote_node=null remote_node_uuid=null iallocator=null
OP_INSTANCE_SET_PARAMS instance_name instance_uuid=null force=false force_variant=false
  ignore_ipolicy=false nics=[] disks=[] beparams={} runtime_mem=null hvparams={}
  disk_template=null ext_params={} file_driver=null file_storage_dir=null pnode=null
  pnode_uuid=null remote_node=null remote_node_uuid=null iallocator=null os_name=null osparams={}
  osparams_private=null wait_for_sync=true offline=null conflicts_check=true hotplug=false
  hotplug_if_possible=false instance_communication=null
OP_INSTANCE_SHUTDOWN instance_name instance_uuid=null force=false ignore_offline_nodes=false
  timeout=120 no_remember=false admin_state_source=null
OP_INSTANCE_STARTUP instance_name instance_uuid=null force=false ignore_offline_nodes=false
  hvparams={} beparams={} no_remember=false startup_paused=false shutdown_timeout=120
OP_NETWORK_ADD network_name network gateway=null network6=null gateway6=null mac_prefix=null
  add_reserved_ips=null conflicts_check=true tags=[]
OP_NETWORK_CONNECT group_name network_name network_mode network_link network_vlan=""
  conflicts_check=true
OP_NETWORK_DISCONNECT group_name network_name
OP_NETWORK_REMOVE network_name force=false
OP_NETWORK_SET_PARAMS network_name gateway=null network6=null gateway6=null mac_prefix=null
  add_reserved_ips=null remove_reserved_ips=null
OP_NODE_ADD node_name hv_state=null disk_state=null primary_ip=null secondary_ip=null readd=false
  group=null master_capable=null vm_capable=null ndparams=null node_setup=false
OP_NODE_EVACUATE early_release=false node_name node_uuid=null remote_node=null
  remote_node_uuid=null iallocator=null mode ignore_soft_errors=null
OP_NODE_MIGRATE node_name node_uuid=null mode=null live=null target_node=null
  target_node_uuid=null allow_runtime_changes=true ignore_ipolicy=false iallocator=null
OP_NODE_MODIFY_STORAGE node_name node_uuid=null storage_type name=null changes
OP_NODE_POWERCYCLE node_name node_uuid=null force=false
OP_NODE_QUERYVOLS output_fields nodes=[]
OP_NODE_QUERY_STORAGE output_fields storage_type=null nodes=[] name=null
OP_NODE_REMOVE node_name node_uuid=null
OP_NODE_SET_PARAMS node_name node_uuid=null force=false hv_state=null disk_state=null
  master_candidate=null offline=null drained=null auto_promote=false master_capable=null
  vm_capable=null secondary_ip=null ndparams=null powered=null
OP_OOB_COMMAND node_names=[] node_uuids=null command timeout=60 ignore_status=false
  power_delay=2.0
OP_OS_DIAGNOSE output_fields names=[]
OP_QUERY what use_locking=false fields qfilter=null
OP_QUERY_FIELDS what fields=null
OP_REPAIR_NODE_STORAGE node_name node_uuid=null storage_type name=null ignore_consistency=false
OP_RESTRICTED_COMMAND use_locking=false nodes node_uuids=null command
OP_TAGS_DEL kind tags name=null
OP_TAGS_GET kind use_locking=false name=null
OP_TAGS_SEARCH pattern
OP_TAGS_SET kind tags name=null
OP_TEST_ALLOCATOR direction mode name nics=null disks=null hypervisor=null iallocator=null tags=[]
  memory=null vcpus=null os=null disk_template=null instances=null evac_mode=null
  target_groups=null spindle_use=1 count=1 group_name=null
OP_TEST_DELAY duration on_master=true on_nodes=[] on_node_uuids=null repeat=0 interruptible=false
  no_locks=true
OP_TEST_DUMMY result=null messages=null fail=null submit_jobs=null
OP_TEST_JQUEUE notify_waitlock=false notify_exec=false log_messages=[] fail=false
OP_TEST_OS_PARAMS osparams_secret=null
"""
