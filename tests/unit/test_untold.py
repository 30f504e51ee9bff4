"""A test whose story is never told cannot fail, so it is found before any runs."""

from tests.support.untold import untold


def test_a_story_that_is_told_is_none() -> None:
    def example() -> None:
        def story() -> None: ...

        story()

    example()
    assert untold(example.__code__) == []


def test_nor_is_one_that_another_tells() -> None:
    def example() -> None:
        def story() -> None: ...

        def scenario() -> None:
            story()

        scenario()

    example()
    assert untold(example.__code__) == []


def test_a_story_that_nobody_tells_is_found() -> None:
    def example() -> None:
        async def story() -> None: ...

        def scenario() -> None: ...

        scenario()

    assert callable(example)
    assert untold(example.__code__) == ["story"]


def test_a_test_without_stories_has_none_untold() -> None:
    assert untold(untold.__code__) == []
