"""The list of topics, and the form that creates one."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.fields import Fields
from ottla.console.model.topics import NewTopic, TopicRow, create_topic, list_topics
from ottla.console.page import Action, Done, Page, View
from ottla.console.tables import arrange
from ottla.operations.survey.metadata import read_metadata

_SORTS = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions,
    "replicas": lambda row: row.replication_factor,
    "troubled": lambda row: row.under_replicated + row.offline,
    "records": lambda row: row.records,
    "size": lambda row: row.size_bytes,
}
DEFAULT = -1


def show_topics(view: View) -> Mapping[str, Any]:
    """Return the topics that the query selects; internal ones on request."""
    with_internal = view.query.is_checked("internal")
    is_large = read_metadata(view.cluster).is_large
    rows = list_topics(view.cluster, include_internal=with_internal, is_patient=not is_large)
    table = arrange(rows, view.query, _SORTS, _text)
    return {**table, "with_internal": with_internal}


def show_new(view: View) -> Mapping[str, Any]:
    """Return nothing: the form keeps what was typed."""
    return {}


def create(view: View) -> Done:
    """Create a topic as the form says."""
    topic = _new_topic(view.form)
    change = create_topic(view.cluster, topic)
    sentence = view.say("Topic {name} is created.", name=topic.name)
    return Done(sentence, view.url("topics", topic.name), change)


def validate(view: View) -> Done:
    """Let the cluster check the form without creating the topic."""
    topic = _new_topic(view.form)
    create_topic(view.cluster, topic, validate_only=True)
    return Done(view.say("Topic {name} can be created.", name=topic.name), data={})


def parse_options(text: str) -> dict[str, str]:
    """Return the options of lines `name=value`; ConfigError names a malformed line."""
    options = {}
    for line in text.splitlines():
        if line.strip():
            name, equals, value = line.partition("=")
            if not equals or not name.strip():
                raise ConfigError(f"cannot read option {line.strip()!r}: write name=value")
            options[name.strip()] = value.strip()
    return options


def _text(row: TopicRow) -> str:
    return row.name


def _new_topic(form: Fields) -> NewTopic:
    options = parse_options(form.text("options"))
    policy = form.text("cleanup_policy")
    if policy:
        options["cleanup.policy"] = policy
    return NewTopic(
        form.required("name"),
        form.integer("partitions", DEFAULT, least=1),
        form.integer("replicas", DEFAULT, least=1),
        options,
    )


PAGES = (
    Page("/topics", "topics.html", show_topics, "topics", refresh_s=5),
    Page(
        # Not below /topics: a topic may have any name there.
        "/create-topic",
        "topic_new.html",
        show_new,
        "topics",
        actions={
            "create": Action(create, "topic.create", "name"),
            "validate": Action(validate, is_preview=True),
        },
    ),
)
