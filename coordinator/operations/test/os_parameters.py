"""Tell whether secret parameters of operating systems reach the coordinator."""

from common.errors import InvalidRequest
from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operating_systems.parameters import read_parameters
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import SecretOsParameters
from coordinator.operations.locking import wanted
from coordinator.operations.steps.scripts import lost_parameters
from coordinator.state.config import Config


class NoPlan(Order):
    """Nothing is done."""


@operation("OP_TEST_OS_PARAMS")
class TryOsParameters(Operation[None, NoPlan], kw_only=True):
    """Name the secret parameters that were given; their values are shown to nobody."""

    osparams_secret: SecretOsParameters = {}

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- needs none
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> NoPlan:
        if isinstance(self.osparams_secret, str):
            raise lost_parameters()
        if not self.osparams_secret:
            raise InvalidRequest("Give secret parameters, with --os-parameters-secret NAME=VALUE.")
        told = read_parameters(self.osparams_secret, what="the secret parameters")
        cluster.log(f"Secret parameters have come, and are not kept: {', '.join(sorted(told))}.")
        return NoPlan()
