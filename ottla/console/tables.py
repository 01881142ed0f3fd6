"""Tables of a page: filter, sort and cut rows as the query string says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.console.fields import Fields

R = TypeVar("R")

ROWS_PER_PAGE = 100


class Table(NamedTuple, Generic[R]):
    """The rows of one page of a table; `total` counts the rows of all pages after the filter."""

    rows: Sequence[R]
    total: int
    page: int
    pages: int


def arrange(
    rows: Sequence[R],
    query: Fields,
    sorts: Mapping[str, Callable[[R], Any]],
    text_of: Callable[[R], str],
) -> dict[str, Any]:
    """Return the names `table`, `sort`, `descending` and `q` for a template.

    `q` filters by `text_of`, ignoring case; `sort` is a key of `sorts`, whose first is the default.
    Unknown values (None) are last in either direction.
    """
    text = query.text("q").lower()
    matching = [row for row in rows if text in text_of(row).lower()] if text else list(rows)
    sort = query.text("sort")
    if sort not in sorts:
        sort = next(iter(sorts))
    descending = query.text("order") == "desc"
    value = sorts[sort]
    known = sorted(
        (row for row in matching if value(row) is not None), key=value, reverse=descending
    )
    matching = known + [row for row in matching if value(row) is None]
    pages = max(1, -(-len(matching) // ROWS_PER_PAGE))
    page = min(query.integer("page", 1, least=1), pages)
    rows_of_page = matching[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE]
    table = Table(rows_of_page, len(matching), page, pages)
    return {"table": table, "sort": sort, "descending": descending, "q": query.text("q")}
