"""The faults, in the order of the code that they are planted in."""

from tests.mutate.apart import APART
from tests.mutate.clients import CLIENTS
from tests.mutate.cluster import CLUSTER
from tests.mutate.confd import CONFD
from tests.mutate.copies import OF_COPIES
from tests.mutate.disks import DISKS as OF_DISKS
from tests.mutate.filters import FILTERS
from tests.mutate.jobs import OF_JOBS
from tests.mutate.machines import OF_MACHINES
from tests.mutate.masters import OF_MASTERS
from tests.mutate.migrations import MIGRATIONS
from tests.mutate.mirrors import MIRRORS
from tests.mutate.moves import MOVES
from tests.mutate.networks import OF_NETWORKS
from tests.mutate.nodes import OF_NODES
from tests.mutate.obeying import OBEYING
from tests.mutate.operating_systems import OF_OPERATING_SYSTEMS
from tests.mutate.post_copy import BY_POST_COPY
from tests.mutate.reservations import RESERVATIONS
from tests.mutate.rest import REST
from tests.mutate.slots import OF_SLOTS
from tests.mutate.tpms import OF_TPMS

FAULTS = (
    *OBEYING,
    *OF_MASTERS,
    *OF_JOBS,
    *OF_NETWORKS,
    *MIGRATIONS,
    *CLUSTER,
    *CONFD,
    *FILTERS,
    *OF_MACHINES,
    *APART,
    *OF_SLOTS,
    *OF_TPMS,
    *CLIENTS,
    *RESERVATIONS,
    *REST,
    *OF_DISKS,
    *MIRRORS,
    *MOVES,
    *BY_POST_COPY,
    *OF_NODES,
    *OF_COPIES,
    *OF_OPERATING_SYSTEMS,
)
