"""Where things are on a node.

``GANTRY_ROOT`` goes before every path, so that several nodes can live on one machine, each
below a directory of its own.
"""

import os
from pathlib import Path

GANETIS_ALLOCATORS = (
    Path("/usr/local/lib/ganeti/iallocators"),
    Path("/usr/lib/ganeti/iallocators"),
)
"""Where Ganeti and others put allocator programs."""

GANETIS_PROVIDERS = (
    Path("/srv/ganeti/extstorage"),
    Path("/usr/local/lib/ganeti/extstorage"),
    Path("/usr/lib/ganeti/extstorage"),
    Path("/usr/share/ganeti/extstorage"),
)
"""Where Ganeti and others put providers of external storage."""

GANETIS_OPERATING_SYSTEMS = (
    Path("/srv/ganeti/os"),
    Path("/usr/local/lib/ganeti/os"),
    Path("/usr/lib/ganeti/os"),
    Path("/usr/share/ganeti/os"),
)
"""Where Ganeti and others put definitions of operating systems."""


class Paths:
    """The directories of one node; files in them belong to who is named."""

    def __init__(self, root: str | None = None) -> None:
        """Use ``root`` instead of the environment's ``GANTRY_ROOT``."""
        self.root = Path(os.environ.get("GANTRY_ROOT", "") if root is None else root)
        prefix = str(self.root) if str(self.root) != "." else ""
        self.state = Path(f"{prefix}/var/lib/gantry")
        self.runtime = Path(f"{prefix}/run/gantry")
        self.logs = Path(f"{prefix}/var/log/gantry")
        self.settings = Path(f"{prefix}/etc/gantry")
        # where Ganeti's programs look
        self.ganetis_sockets = Path(f"{prefix}/run/ganeti/socket")
        self.ganetis_data = Path(f"{prefix}/var/lib/ganeti")

    # noded's, mode 0600 or 0700
    @property
    def replica(self) -> Path:
        return self.state / "state.sqlite"

    @property
    def grants(self) -> Path:
        return self.state / "mastership.json"

    @property
    def roster(self) -> Path:
        """Whose orders this node takes."""
        return self.state / "roster.json"

    @property
    def revoked_keys(self) -> Path:
        """Keys of certificates that open nothing any more, one a line, the latest last."""
        return self.state / "revoked-keys"

    @property
    def identity(self) -> Path:
        """Key, certificate and authority of this node."""
        return self.state / "identity"

    @property
    def exports(self) -> Path:
        """One directory an export, named after the instance."""
        return self.state / "export"

    @property
    def images(self) -> Path:
        """Images of operating systems that were fetched, by their SHA-256."""
        return self.state / "images"

    @property
    def join_token(self) -> Path:
        return self.state / "join-token"

    @property
    def instances(self) -> Path:
        """One directory a guest, named by UUID."""
        return self.runtime / "instances"

    @property
    def copies(self) -> Path:
        """One directory for each side of a copy that is under way."""
        return self.runtime / "copies"

    @property
    def os_runs(self) -> Path:
        """One directory for each script of an operating system that is under way."""
        return self.runtime / "os"

    @property
    def os_logs(self) -> Path:
        """What scripts of operating systems have said, a file for each run."""
        return self.logs / "os"

    @property
    def attached(self) -> Path:
        """Where disks are that programs attached, until the power goes."""
        return self.runtime / "attached"

    # root's to write, anybody's to read
    @property
    def guest_rules(self) -> Path:
        """What guests of this node may be given."""
        return self.settings / "guests"

    @property
    def kvm_ifup(self) -> Path:
        """What is run for each nic of a guest that starts."""
        return self.settings / "kvm-ifup-custom"

    @property
    def hooks(self) -> Path:
        """What is run before and after operations."""
        return self.settings / "hooks"

    @property
    def remote_rules(self) -> Path:
        """Which files the master may put here, and whether it may run commands."""
        return self.settings / "remote"

    @property
    def out_of_band(self) -> Path:
        """Programs that switch the power of other machines."""
        return self.settings / "out-of-band"

    @property
    def restricted_commands(self) -> Path:
        """What operators may have run here though nobody can log in."""
        return self.settings / "restricted-commands"

    # root's to write, gantry-rapi's to read
    @property
    def rapi_users(self) -> Path:
        """Who may use the REST interface of this node, in Ganeti's format."""
        return self.settings / "rapi-users"

    # noded's to write, gantry-rapi's to read
    @property
    def cluster_rapi_users(self) -> Path:
        """Who may use the REST interface of the cluster, wherever its master is."""
        return self.state / "rest-users" / "users"

    @property
    def cluster_rapi_certificate(self) -> Path:
        """Key and certificate of the REST interface of the cluster, where it has been given one."""
        return self.state / "rest-users" / "certificate.pem"

    # noded's to write, gantry-confd's to read
    @property
    def confd(self) -> Path:
        """The key of questions about the configuration, and what they are answered from."""
        return self.state / "confd"

    # anybody's to read
    @property
    def ssconf(self) -> Path:
        return self.state / "ssconf"

    def own_allocators(self) -> tuple[Path, ...]:
        """Where allocator programs are looked for that replace the built-in one."""
        prefix = "" if str(self.root) == "." else str(self.root)
        places = ("/usr/local/lib/gantry/iallocators", "/usr/lib/gantry/iallocators")
        return tuple(Path(f"{prefix}{place}") for place in places)

    def providers(self) -> tuple[Path, ...]:
        """Where providers of external storage are looked for."""
        prefix = "" if str(self.root) == "." else str(self.root)
        own = Path(f"{prefix}/usr/local/lib/gantry/extstorage")
        return (own, *GANETIS_PROVIDERS)

    def operating_systems(self) -> tuple[Path, ...]:
        """Where definitions of operating systems are looked for."""
        prefix = "" if str(self.root) == "." else str(self.root)
        own = Path(f"{prefix}/usr/local/lib/gantry/os")
        return (own, *GANETIS_OPERATING_SYSTEMS)

    # the coordinator's
    @property
    def luxi_socket(self) -> Path:
        """In a directory of its own, so that the coordinator can write nowhere else."""
        return self.runtime / "coordinator" / "luxi.sock"

    # gantry-rapi's
    @property
    def rapi_certificate(self) -> Path:
        """Key and certificate of the REST interface, where the operator has brought none."""
        return self.state / "rapi" / "rapi.pem"

    @property
    def access_log(self) -> Path:
        return self.logs / "rapi" / "rapi-access.log"
