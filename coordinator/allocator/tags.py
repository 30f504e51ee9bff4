"""What cluster tags tell the allocator.

==============================  =====================================================
cluster tag                     meaning
==============================  =====================================================
``htools:iextags:X``            instances that share a tag starting with X are kept
                                on different primary nodes
``htools:nlocation:X``          node tags starting with ``X:`` say where a node stands
``htools:desiredlocation:X``    instance tags starting with X name a wanted location
``htools:migration:X``          node tags starting with ``X:`` restrict live migration
``htools:allowmigration:A::B``  a node with migration tag B also takes instances from
                                nodes with A
==============================  =====================================================
"""

from __future__ import annotations

from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SPACE = "htools:"


class TagRules(Record):
    """The rules of one cluster; prefixes as tuples for ``str.startswith``."""

    exclusion: tuple[str, ...]
    location: tuple[str, ...]
    desired_location: tuple[str, ...]
    migration: tuple[str, ...]
    allowed_migrations: frozenset[tuple[str, str]]  # (from a node with, to a node with)

    @classmethod
    def of(cls, cluster_tags: Iterable[str]) -> TagRules:
        tags = tuple(cluster_tags)
        moves = (rest.split("::") for rest in _after("allowmigration:", tags))
        return cls(
            exclusion=tuple(rest for rest in _after("iextags:", tags) if rest),
            location=tuple(f"{rest}:" for rest in _after("nlocation:", tags)),
            desired_location=tuple(rest for rest in _after("desiredlocation:", tags) if rest),
            migration=tuple(f"{rest}:" for rest in _after("migration:", tags)),
            allowed_migrations=frozenset((m[0], m[1]) for m in moves if len(m) == 2),
        )

    def exclusion_tags(self, instance_tags: Iterable[str]) -> frozenset[str]:
        return _starting(self.exclusion, instance_tags)

    def desired_locations(self, instance_tags: Iterable[str]) -> frozenset[str]:
        return _starting(self.desired_location, instance_tags)

    def location_tags(self, node_tags: Iterable[str]) -> frozenset[str]:
        return _starting(self.location, node_tags)

    def migration_tags(self, node_tags: Iterable[str]) -> frozenset[str]:
        """Tags that a target has to accept before an instance may leave such a node."""
        return _starting(self.migration, node_tags)

    def accepted_tags(self, node_tags: Iterable[str]) -> frozenset[str]:
        """Migration tags of the nodes from which a node with these tags takes instances."""
        own = self.migration_tags(node_tags)
        return own | {origin for origin, target in self.allowed_migrations if target in own}


def _after(kind: str, tags: tuple[str, ...]) -> list[str]:
    """What follows the prefix in each tag; the prefix may lack its final colon."""
    prefix = _SPACE + kind
    bare = prefix.removesuffix(":")
    return [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)] + [
        "" for tag in tags if tag == bare
    ]


def _starting(prefixes: tuple[str, ...], tags: Iterable[str]) -> frozenset[str]:
    return frozenset(tag for tag in tags if tag.startswith(prefixes)) if prefixes else frozenset()
