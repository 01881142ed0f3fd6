"""The path through the lessons: level by level, with the minutes that a lesson takes to read.

`ottla learn next` follows it, and `ottla learn --map` shows it with what is done.
"""

from collections.abc import Collection, Mapping
from typing import Any

from ottla.learn.course import LESSONS
from ottla.learn.events import Text
from ottla.learn.lesson import Lesson

# The words or characters of a technical text with pictures that are read in a minute.
_WORDS, _CHARACTERS = 120, 250
LEVELS: Mapping[Text, tuple[str, ...]] = {
    Text("first steps", "入门"): (
        *("architecture", "create-topic", "direct-to-leader", "order", "partitioner", "replay"),
        *("committed-offset", "rebalance", "idle-consumer", "offset-reset", "pull", "isr"),
        *("acks-0", "acks-1", "acks-all", "high-watermark", "log-directory", "grow-partitions"),
        "num-partitions",
    ),
    Text("every day", "日常"): (
        *("batches", "send-path", "retries", "unsent-records", "delivery-timeout", "acks-2"),
        *("acks-1-duplicates", "when-to-commit", "auto-commit", "lag", "dead-letters"),
        *("one-partition", "other-queues", "subscription", "coordinator", "assignors"),
        *("member-timeouts", "static-membership", "cooperative-rebalance", "retention"),
        *("compaction", "internal-topics", "load-test", "names"),
    ),
    Text("in depth", "深入"): (
        *("transaction", "fencing", "exactly-once", "in-flight", "slow-replica"),
        *("unclean-election", "eligible-leaders", "truncation", "controller"),
        *("controller-duties", "kraft", "follower-fetching", "batch-format", "memory"),
    ),
}
"""The lessons of each level, in the order in which they build on each other."""
ORDER = tuple(name for lessons in LEVELS.values() for name in lessons)


def minutes(lesson: Lesson, language: str) -> int:
    """Return the minutes that a lesson takes, estimated from the length of its explanation."""
    text = lesson.explanation.zh if language == "zh" else lesson.explanation.en
    amount = len(text) / _CHARACTERS if language == "zh" else len(text.split()) / _WORDS
    return 1 + round(amount)


def rows(language: str, done: Collection[str]) -> list[dict[str, Any]]:
    """Return the map: a row for each lesson, in the order of the path."""
    return [
        {
            "level": level.render(language),
            "subject": LESSONS[name].subject,
            "lesson": name,
            "minutes": minutes(LESSONS[name], language),
            "done": name in done,
        }
        for level, names in LEVELS.items()
        for name in names
    ]
