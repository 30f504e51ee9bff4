"""The whole lab: brought up node beside node, and taken down."""

import fcntl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from deploy.uml import network
from deploy.uml.command import Trouble
from deploy.uml.image import ensure_image
from deploy.uml.node import Node
from deploy.uml.place import NAMES, Place

ORDERLY_S = 30.0  # for a node to shut down


class Lab:
    """What was interrupted half-way is gone on with by doing it again."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def nodes(self) -> list[Node]:
        """Return the nodes that have been made, on or off."""
        return [Node(self.place, spot) for spot in self.place.present()]

    def node(self, name: str) -> Node:
        """Return a node by name.

        Raises:
            Trouble: there is none of that name.
        """
        nodes = {node.name: node for node in self.nodes()}
        if name not in nodes:
            raise Trouble(
                f"There is no node {name} in the lab; there are {', '.join(nodes)}."
                if nodes else "The lab is empty; “deploy/lab up” makes it."
            )  # fmt: skip
        return nodes[name]

    def up(self, count: int, say: Callable[[str], None]) -> list[Node]:
        """Start at least ``count`` nodes; return when all of them are up.

        Raises:
            Trouble: a node did not come up.
        """
        if not 1 <= count <= len(NAMES):
            raise Trouble(f"A lab has 1 to {len(NAMES)} nodes, not {count}.")
        with self._alone():
            image = self._image(say)
            network.build(self.place)
            spots = {*self.place.present(), *self.place.spots(count)}
            nodes = [Node(self.place, spot) for spot in sorted(spots, key=lambda s: s.number)]
            for node in nodes:
                node.power_on(image)
        with ThreadPoolExecutor(len(nodes)) as pool:
            for _ in pool.map(Node.wait_until_up, nodes):
                pass
        say(f"{len(nodes)} nodes are up: {', '.join(node.name for node in nodes)}")
        return nodes

    def down(self) -> None:
        """Shut all nodes down in order, at the same time; what does not end is ended."""
        nodes = [node for node in self.nodes() if node.pid is not None]
        if nodes:
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(lambda node: node.shut_down(ORDERLY_S), nodes))
        network.tear_down(self.place)

    def clean(self) -> None:
        """End all nodes at once and delete what they wrote; the image stays for the next lab."""
        for node in self.nodes():
            node.power_off()
            node.forget()
        network.tear_down(self.place)
        self._record.unlink(missing_ok=True)
        (self.place.base / "lock").unlink(missing_ok=True)
        if self.place.base.is_dir():
            self.place.base.rmdir()

    @property
    def _record(self) -> Path:
        """Links to the image of which the nodes' system disks hold the differences."""
        return self.place.base / "image"

    def _image(self, say: Callable[[str], None]) -> Path:
        if self._record.exists() and self.nodes():
            return self._record.resolve()
        image = ensure_image(self.place, say)
        self._record.unlink(missing_ok=True)
        self._record.symlink_to(image)
        return image

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until nobody else brings this lab up."""
        self.place.base.mkdir(parents=True, exist_ok=True)
        with (self.place.base / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
