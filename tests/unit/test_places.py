"""Who makes room when there are too many."""

from common.places import Places, source_of


def filled(places: Places[str], *names: str) -> list[str | None]:
    """Take a place for each, from the source of its first letter; return who had to go."""
    return [places.take(name, name[0]) for name in names]


def test_a_source_that_floods_drives_out_its_own() -> None:
    places: Places[str] = Places(4)
    assert filled(places, "c1", "a1", "a2", "a3") == [None] * 4
    assert filled(places, "a4", "a5") == ["a1", "a2"]
    assert "c1" in places


def test_one_source_may_take_so_many() -> None:
    places: Places[str] = Places(10, 2)
    assert filled(places, "a1", "a2", "b1", "a3") == [None, None, None, "a1"]


def test_of_many_sources_the_one_that_came_first_goes() -> None:
    assert filled(Places(2), "a1", "b1", "c1", "d1") == [None, None, "a1", "b1"]


def test_whoever_is_held_stays_and_the_newcomer_goes() -> None:
    places: Places[str] = Places(2)
    filled(places, "a1", "b1")
    places.hold("a1")
    places.hold("b1")
    assert filled(places, "a2") == ["a2"]
    places.release("b1")
    assert filled(places, "a3") == ["b1"]
    assert sorted(places) == ["a1", "a3"]


def test_places_that_were_left_are_free() -> None:
    places: Places[str] = Places(2)
    filled(places, "a1", "b1")
    places.leave("a1")
    places.leave("a1")
    assert filled(places, "c1") == [None]
    assert len(places) == 2
    assert places.held == 0


def test_a_source_is_an_address_or_a_network() -> None:
    assert source_of("192.0.2.1") == source_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert source_of("2001:db8::1") == source_of("2001:db8::2") == "2001:db8::"
    assert source_of("2001:db8:0:1::1") != source_of("2001:db8::1")
