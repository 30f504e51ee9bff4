"""The fields of the cluster; names, titles, kinds and texts are Ganeti's."""

from common.model.cluster import Cluster
from common.version import VERSION
from coordinator.queries.field import Field, Kind, Missing, entity_fields, table
from coordinator.state.config import Config

CONFIG_VERSION = 3010000  # of the Ganeti whose interfaces these are
OS_API_VERSION = 20


class ClusterRow:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.entity: Cluster = config.cluster


# fmt: off
_FIELDS: tuple[Field[ClusterRow], ...] = (
    Field("cluster_name", "Name", Kind.TEXT, "Cluster name", lambda row: row.entity.name),
    Field("name", "Name", Kind.TEXT, "Cluster name", lambda row: row.entity.name),
    Field("architecture", "ArchInfo", Kind.OTHER, "Architecture information",
          lambda _: ["64bit", "x86_64"]),
    Field("config_version", "ConfigVersion", Kind.NUMBER, "Configuration format version",
          lambda _: CONFIG_VERSION),
    Field("drain_flag", "QueueDrained", Kind.BOOL, "Flag whether job queue is drained",
          lambda row: row.entity.queue_drained),
    Field("export_version", "ExportVersion", Kind.NUMBER, "Import/export file format version",
          lambda _: 0),
    Field("master_node", "Master", Kind.TEXT, "Master node name",
          lambda row: row.config.master().name),
    Field("os_api_version", "OsApiVersion", Kind.NUMBER, "API version for OS template scripts",
          lambda _: OS_API_VERSION),
    Field("protocol_version", "ProtocolVersion", Kind.NUMBER, "RPC protocol version",
          lambda _: CONFIG_VERSION),
    Field("software_version", "SoftwareVersion", Kind.TEXT, "Software version",
          lambda _: VERSION),
    Field("vcs_version", "VCSVersion", Kind.TEXT, "VCS version",
          lambda _: f"gantry-{VERSION}"),
    Field("volume_group_name", "VgName", Kind.TEXT, "LVM volume group name",
          lambda row: row.entity.volume_group_name or Missing.UNAVAILABLE),
    Field("watcher_pause", "WatcherPause", Kind.TIMESTAMP, "Until when watcher is paused",
          lambda row: Missing.UNAVAILABLE if row.entity.watcher_pause is None
          else row.entity.watcher_pause),
)
# fmt: on

_SHARED = ("ctime", "mtime", "tags")
CLUSTER_FIELDS = table(
    _FIELDS, (field for field in entity_fields("Cluster") if field.name in _SHARED)
)
