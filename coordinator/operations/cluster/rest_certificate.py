"""What the REST interface of every candidate shows its clients, one and the same for all."""

from collections.abc import Callable, Iterator

from common.errors import Conflict, InvalidRequest
from common.model.secret import REST_CERTIFICATE, Secret
from coordinator.operations.parameter import LOST
from coordinator.operations.step import Step, record
from coordinator.state.rows import Put
from coordinator.state.state import State


def check_wish(given: str, now: float, *, new: bool) -> None:
    """Refuse a pair of key and certificate that clients could not be shown.

    Raises:
        InvalidRequest: says why.
    """
    from common.tls.rest import check_pair  # large, and commands read operations

    if given and new:
        raise InvalidRequest("Show the certificate in the file, or a new one: not both.")
    if given:
        check_pair(given, now)


def show_given(given: Callable[[], str]) -> Step:
    """Have candidates show what an operator has brought; asked for when it is stored."""

    def put(_: State) -> Iterator[Put]:
        if (pem := given()) == LOST:
            raise Conflict(
                "The key was never stored, and the coordinator that was told it has ended. Give "
                "the command again."
            )
        yield Put(Secret(id=REST_CERTIFICATE, value=pem))

    return record(
        "have candidates show the certificate to clients of REST", put, point_of_no_return=True
    )


def show_new(now: float) -> Step:
    """Have candidates show a new one, for the names and addresses that clients may use."""

    def put(state: State) -> Iterator[Put]:
        from common.tls.rest import make_pair

        config = state.config
        nodes = config.sorted_nodes()
        addresses = [config.cluster.master_ip, *(node.primary_ip for node in nodes)]
        also = [*(node.name for node in nodes), *map(str, filter(None, addresses))]
        pem = make_pair(config.cluster.name, also, now)
        yield Put(Secret(id=REST_CERTIFICATE, value=pem))

    return record(
        "make a certificate for clients of REST, and have candidates show it",
        put,
        point_of_no_return=True,
    )
