"""Errors about tables that are no topics name the topics that may be meant."""

from ottla.console.sql.suggestions import with_topics

_UNKNOWN = 'Catalog Error: Table with name {} does not exist!\nDid you mean "pg_class"?'
_TOPICS = ("orders", "Payments", "orders.v1")


def test_an_unknown_table_suggests_topics_of_similar_names() -> None:
    """Whatever the case of their letters; DuckDB's own tables are not suggested."""
    message = with_topics(_UNKNOWN.format("ordres"), lambda: _TOPICS)
    assert message.startswith("there is no topic 'ordres' (did you mean \"orders\" or ")
    assert "pg_class" not in message
    assert '"Payments"?' in with_topics(_UNKNOWN.format("PAYMENT"), lambda: _TOPICS)


def test_an_unknown_table_without_a_similar_topic_has_the_hint_only() -> None:
    """The names of topics may need quotes."""
    message = with_topics(_UNKNOWN.format("x"), lambda: _TOPICS)
    assert message == (
        "there is no topic 'x'; tables are topics: quote names with dots or dashes, as in"
        ' "orders.v1"'
    )


def test_other_errors_stay_and_read_no_topics() -> None:
    """Only an unknown table needs the list of topics."""

    def topics() -> list[str]:
        raise AssertionError("the topics are not needed")

    assert with_topics("Parser Error: syntax error", topics) == "Parser Error: syntax error"
