"""Parameters of a search and of a report of lags."""

import pytest

from ottla.base.errors import ConfigError
from ottla.base.search.filters import Filters
from ottla.server.search.request import Anchor, Position, parse_lag, parse_search


def test_parameters_of_a_search() -> None:
    """Every parameter reaches the request, decoded."""
    search = parse_search(
        "topic=a%20b&partition=1&partition=0&from=@5&to=-10&value=x%26y&header=h%3D1&header=g"
        "&json=%24.a&where=%24.b&ignore_case=true&isolation=read_committed&limit=0&value_limit=9"
    )
    assert (search.topic, search.partitions) == ("a b", (1, 0))
    assert (search.start, search.end) == (Position(Anchor.TIME, 5), Position(Anchor.TAIL, 10))
    assert search.filters == Filters(value="x&y", headers=("h=1", "g"), where=("$.b", "$.a"), ignore_case=True)  # fmt: skip
    assert (search.read_committed, search.limit, search.value_limit) == (True, 0, 9)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("", "topic is missing"),
        ("topic=a&topic=b", "topic is given 2 times"),
        ("topic=a&valeu=1", "'valeu' is not a parameter; known parameters: topic"),
        ("topic=a&from=soon", "from 'soon' is not a position"),
        ("topic=a&to=+1", "to ' 1' is not a position"),
        ("topic=a&partition=-1", "partition '-1' is not a number"),
        ("topic=a&limit=%D9%A1", "is not a number of 0 or more"),
        ("topic=a&limit=99999999999999999999", "is not a number of 0 or more"),
        ("topic=a&isolation=serializable", "isolation 'serializable' is not one of: read_unc"),
    ],
)
def test_wrong_parameter_is_explained(query: str, sentence: str) -> None:
    """The error quotes the value."""
    with pytest.raises(ConfigError) as caught:
        parse_search(query)
    assert sentence in str(caught.value)


def test_parameters_of_a_lag_report() -> None:
    """A topic may contain a colon in neither form, but a group may be any text."""
    assert parse_lag("group=a:b&position=t:0:42") == (["a:b"], [("t", 0, 42)])
    with pytest.raises(ConfigError, match="TOPIC:PARTITION:OFFSET"):
        parse_lag("position=t:0")
