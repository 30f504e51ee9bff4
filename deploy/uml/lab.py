"""The whole lab: brought up node beside node, and taken down."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.uml import network
from deploy.uml.cache import my_turn
from deploy.uml.command import Trouble
from deploy.uml.image import ensure_image
from deploy.uml.node import Node
from deploy.uml.place import NAMES, Place
from deploy.uml.power import shut_down, wait_until_up
from deploy.uml.room import check_room_for_nodes

Say = Callable[[str], None]


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
                if nodes
                else "The lab is empty; “deploy/lab up” makes it."
            )
        return nodes[name]

    def up(self, count: int, say: Say) -> list[Node]:
        """Start at least ``count`` nodes; return when all of them are up.

        Raises:
            Trouble: a node did not come up.
        """
        if not 1 <= count <= len(NAMES):
            raise Trouble(f"A lab has 1 to {len(NAMES)} nodes, not {count}.")
        with self._alone(say):
            image = self._image(say)
            spots = {*self.place.present(), *self.place.spots(count)}
            nodes = [Node(self.place, spot) for spot in sorted(spots, key=lambda s: s.number)]
            if off := [node for node in nodes if node.pid is None]:
                check_room_for_nodes(self.place.base, len(off))
            network.build(self.place)
            for node in off:
                node.power_on(image)
        wait_until_up(nodes)
        say(f"up: {', '.join(node.name for node in nodes)}")
        return nodes

    def start(self, node: Node, say: Say) -> None:
        """Start one node that has been made; return when it is up.

        Raises:
            Trouble: it did not come up.
        """
        with self._alone(say):
            node.power_on(self._image(say))
        wait_until_up([node])

    def down(self, say: Say) -> None:
        """Shut all nodes down in order, at the same time; what does not end is ended."""
        if not self.place.base.exists():
            return
        with self._alone(say):
            shut_down(self.nodes())
            network.tear_down(self.place)

    def clean(self, say: Say) -> None:
        """End all nodes at once and delete what they wrote; the image stays for the next lab."""
        with self._alone(say):
            for node in self.nodes():
                node.power_off()
            network.tear_down(self.place)
            self.place.record.unlink(missing_ok=True)
            shutil.rmtree(self.place.base)

    def _image(self, say: Say) -> Path:
        record = self.place.record
        if record.exists() and any(node.spot.system.exists() for node in self.nodes()):
            return record.resolve()
        image = ensure_image(self.place, say)
        record.parent.mkdir(exist_ok=True)
        record.unlink(missing_ok=True)
        record.symlink_to(image)
        return image

    @contextmanager
    def _alone(self, say: Say) -> Iterator[None]:
        """Wait until nobody else brings this lab up or down.

        Raises:
            Trouble: its directory is somebody else's.
        """
        base, lock = self.place.base, self.place.base / "lock"
        base.mkdir(parents=True, exist_ok=True)
        if not lock.exists() and any(base.iterdir()):
            raise Trouble(f"{base} holds other things; choose another name with GANTRY_LAB.")
        with my_turn(lock, lambda: say("waiting for another deploy/lab to end")):
            yield
