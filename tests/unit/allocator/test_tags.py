"""What cluster tags mean."""

from coordinator.allocator.tags import TagRules


def test_an_exclusion_prefix_is_taken_as_it_is() -> None:
    rules = TagRules.of(["htools:iextags:service", "something:else"])
    tags = frozenset({"service:dns", "services", "web"})
    assert rules.exclusion_tags(tags) == {"service:dns", "services"}


def test_a_location_prefix_gets_a_colon() -> None:
    rules = TagRules.of(["htools:nlocation:rack"])
    assert rules.location_tags(frozenset({"rack:1", "racks", "row:2"})) == {"rack:1"}


def test_a_bare_prefix_excludes_nothing_but_names_places_that_start_with_a_colon() -> None:
    rules = TagRules.of(["htools:iextags", "htools:nlocation"])
    assert rules.exclusion_tags(frozenset({"dns"})) == frozenset()
    assert rules.location_tags(frozenset({"rack:1", ":here"})) == {":here"}


def test_a_node_takes_from_its_like_and_from_what_is_allowed_in_one_step() -> None:
    rules = TagRules.of(
        [
            "htools:migration:cpu",
            "htools:allowmigration:cpu:a::cpu:b",
            "htools:allowmigration:cpu:z::cpu:a",
            "htools:allowmigration:cpu:y::cpu:b::cpu:c",
        ]
    )
    assert rules.accepted_tags(frozenset({"cpu:b", "web"})) == {"cpu:a", "cpu:b"}
