"""Who uses the cluster's REST interface, and what that shows them: kept with the state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidRequest
from common.model.node import Node
from common.model.secret import REST_CERTIFICATE, REST_USERS, Secret
from common.names import NodeId
from common.noderpc.rest_users import RestUsers
from common.rest_users import changed
from coordinator.master.news import NewsTeller
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store


def users_in(state: State) -> str:
    """Return them in the form of a file."""
    kept = state.secrets.get(REST_USERS)
    return "" if kept is None else kept.value


def certificate_in(state: State) -> str:
    """Return what all candidates show clients, PEM; empty: each has its own."""
    kept = state.secrets.get(REST_CERTIFICATE)
    return "" if kept is None else kept.value


@dataclass(frozen=True, eq=False)
class _News:
    nodes: Mapping[NodeId, Node]
    users: str
    certificate: str


class RestUsersPublisher(NewsTeller[_News]):
    """Tells candidates who may use it: each may be the master next, and is asked meanwhile."""

    about = "the users and the certificate of the REST interface"

    def is_of(self, news: _News, state: State) -> bool:
        told = (users_in(state), certificate_in(state))
        return news.nodes is state.config.nodes and (news.users, news.certificate) == told

    async def make(self, state: State) -> _News:
        return _News(state.config.nodes, users_in(state), certificate_in(state))

    def is_for(self, news: _News, node: Node) -> bool:
        now = news.nodes.get(node.uuid)
        return now is not None and now.master_candidate

    async def tell(self, node: Node, news: _News) -> None:
        calls = self.nodes.service(RestUsers, node)
        await calls.publish(users=news.users)
        if news.certificate:
            await calls.publish_certificate(pem=news.certificate)

    async def withdraw(self, node: Node) -> None:
        await self.nodes.service(RestUsers, node).withdraw()


class RestUserBook:
    """What root asks and changes of them; who asks is looked at before."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self) -> str:
        """Return all, as a file has them; passwords as they are kept."""
        return users_in(self._store.state)

    async def change(self, add: Any = "", remove: Any = "") -> bool:
        """Add a line, or remove those of a name; return once it is durable.

        Raises:
            InvalidRequest, Conflict, NotFound: as ``common.rest_users.changed``.
        """
        if not isinstance(add, str) or not isinstance(remove, str):
            raise InvalidRequest("A line to add and a name to remove are texts.")

        def put(state: State) -> list[Put]:
            return [Put(Secret(id=REST_USERS, value=changed(users_in(state), add, remove)))]

        await self._store.commit(put)
        return True
