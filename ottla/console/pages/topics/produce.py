"""The produce page: one record, or many from templates."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.fields import Fields
from ottla.console.model.messages.browsing import MessageRow, read_message
from ottla.console.model.partitions import read_map
from ottla.console.model.producing import (
    InputFormat,
    InputHeader,
    ProduceRequest,
    preview,
    produce,
)
from ottla.console.page import Action, Done, Page, View
from ottla.console.pages.topics.messages import parse_time

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def show(view: View) -> Mapping[str, Any]:
    """Return the form; `from=PARTITION:OFFSET` fills it with a record of the topic."""
    return {
        "topic": view.path["topic"],
        "partitions": len(read_map(view.cluster, view.path["topic"]).partitions),
        "formats": list(InputFormat),
        "codecs": _CODECS,
        "example": _example(view),
        "samples": None,
        "written": None,
    }


def send(view: View) -> Done:
    """Write the records."""
    result = produce(view.cluster, read_form(view))
    position = result.positions[0] if result.positions else None
    sentence = view.say("{count} records are written.", count=result.records)
    if result.records == 1 and position:
        sentence = view.say(
            "The record is written to partition {partition} at offset {offset}.",
            partition=position.partition,
            offset=position.offset,
        )
    return Done(sentence, change=result.change, data={"written": result})


def show_samples(view: View) -> Done:
    """Show the first records that the templates result in."""
    return Done(data={"samples": preview(read_form(view), now_ms=view.cluster.now_ms())})


def read_form(view: View) -> ProduceRequest:
    """Return the request that the form describes; ConfigError names a wrong value."""
    form = view.form
    timestamp = form.text("timestamp")
    return ProduceRequest(
        topic=view.path["topic"],
        value=form.get("value", "").replace("\r\n", "\n"),
        value_format=_format(form, "value_format"),
        key=form.get("key", ""),
        key_format=_format(form, "key_format"),
        headers=tuple(_headers(form.get("headers", ""))),
        partition=form.integer("partition", least=0) if form.text("partition") else None,
        timestamp_ms=parse_time(timestamp) if timestamp else None,
        codec=form.text("codec", "none"),
        count=form.integer("count", 1, least=1),
        has_templates=form.is_checked("templates"),
    )


def _format(form: Fields, name: str) -> InputFormat:
    try:
        return InputFormat(form.text(name, InputFormat.TEXT))
    except ValueError:
        raise ConfigError(f"field {name!r} has an unknown format") from None


def _headers(text: str) -> Iterator[InputHeader]:
    for line in text.splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not name.strip():
            raise ConfigError(f"cannot read header {line!r}: write name: value")
        yield InputHeader(name.strip(), value.strip() if colon else None)


def _example(view: View) -> MessageRow | None:
    partition, _, offset = view.query.text("from").partition(":")
    if not (partition.isdigit() and offset.isdigit()):
        return None
    topic = view.path["topic"]
    return read_message(view.cluster, topic, int(partition), int(offset), masking=view.masking)


PAGES = (
    Page(
        "/topics/{topic}/produce",
        "produce.html",
        show,
        "topics",
        actions={
            "send": Action(send, "records.produce", "topic"),
            "preview": Action(show_samples, is_preview=True),
        },
        role=Role.EDITOR,
    ),
)
