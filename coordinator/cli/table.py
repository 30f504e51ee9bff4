"""Rows and columns, as Ganeti's list commands print them."""

from collections.abc import Callable, Iterator, Sequence


def table(
    titles: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    separator: str | None = None,
    dye: Callable[[int, str], str] = lambda _, text: text,
) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        titles: of the columns; None: without headers.
        rows: cells, one a column.
        right: for each column, whether it is aligned to the right.
        separator: goes between cells, which are then not padded; None: one space, padded.
        dye: gets a column's number and a padded cell, and may colour it.
    """
    lines = rows if titles is None else [titles, *rows]
    if separator is not None:
        yield from (separator.join(line) for line in lines)
        return
    widths = [max(map(len, column), default=0) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            text.rjust(width) if is_right else text.ljust(width)
            for text, width, is_right in zip(line, widths, right, strict=True)
        ]
        if cells and not right[-1]:
            cells[-1] = line[-1]  # trailing spaces would only get in the way
        yield " ".join(dye(column, text) for column, text in enumerate(cells))
