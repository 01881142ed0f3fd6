"""The produce page: one record, many from templates, or a record of the topic again."""

from collections.abc import Mapping
from typing import Any

from ottla.console.accounts.roles import Role
from ottla.console.model.messages.browsing import read_message
from ottla.console.model.messages.masking import require_unmasked
from ottla.console.model.messages.values import ShownFormats
from ottla.console.model.producing import CODECS, InputFormat, preview, produce
from ottla.console.page import Action, Done, Page, View
from ottla.console.pages.topics.messages import read_position
from ottla.console.pages.topics.produce_form import AGAIN_MAX_BYTES, fields_of, read_form
from ottla.operations.survey.metadata import read_metadata, read_topic

_TOPICS_MAX = 1_000


def show(view: View) -> Mapping[str, Any]:
    """Return the form; `from=PARTITION:OFFSET` fills it with a record of the topic."""
    topic, again = view.path["topic"], _position(view)
    partitions = len(read_topic(view.cluster, topic).partitions)
    return {
        "topic": topic,
        "again": again,
        # A form that was sent has the values that the user typed.
        "initial": _record_fields(view, *again) if again and not view.form else {},
        "partitions": partitions,
        "topics": [*read_metadata(view.cluster).topics][:_TOPICS_MAX] if again else [],
        "formats": list(InputFormat),
        "codecs": CODECS,
        "samples": None,
        "written": None,
    }


def send(view: View) -> Done:
    """Write the records."""
    result = produce(view.cluster, read_form(view.form, view.path["topic"]))
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
    return Done(
        data={
            "samples": preview(
                read_form(view.form, view.path["topic"]), now_ms=view.cluster.now_ms()
            )
        }
    )


def _position(view: View) -> tuple[int, int] | None:
    text = view.query.text("from")
    return read_position(text) if text else None


def _record_fields(view: View, partition: int, offset: int) -> Mapping[str, str]:
    """Return the fields of a record; MaskedTopic if the user may not read all of it.

    A masked record would be written with the marks in place of the hidden parts.
    """
    topic, rules = view.path["topic"], view.masking
    rows = [
        read_message(
            # Hex digits are two for each byte.
            view.cluster,
            topic,
            partition,
            offset,
            masking=masking,
            text_limit=2 * AGAIN_MAX_BYTES,
            shown=ShownFormats(decodes_schemas=False),
        )
        for masking in ([(), rules] if rules else [()])
    ]
    if rows[0] != rows[-1]:
        require_unmasked(rules, topic, f"send the record {partition}:{offset} again")
    return fields_of(rows[0])


PAGES = (
    Page(
        "/topics/{topic}/produce",
        "produce.html",
        show,
        "topics",
        actions={
            "send": Action(send, "topic.produce", "topic"),
            "preview": Action(show_samples, is_preview=True),
        },
        role=Role.EDITOR,
    ),
)
