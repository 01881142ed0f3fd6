"""The check of requests that name topics and partitions: the refused ones get an error each.

The APIs differ in data only: the names of their fields, and the rows of their responses.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.authorization.access import Access
from ottla.server.authorization.guarding import Verdict
from ottla.wire.schema import Message, Struct, first_version

_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@dataclass(frozen=True, kw_only=True)
class ByTopic:
    """The check of one API; called with the sender's rights and the request."""

    operation: AclOperation
    response: type[Message]
    topic: type[Struct]
    partition: type[Struct]
    # The fields of request and response.
    topics: tuple[str, str] = ("topics", "topics")
    partitions: tuple[str, str] = ("partitions", "partitions")
    # The field with the number of a partition; the request may have numbers only.
    number: tuple[str | None, str] = ("partition_index", "partition_index")
    name: str = "name"
    # Fields of a refused partition whose default is another value.
    values: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def ids_since(self) -> int | None:
        """The first version in which ids name the topics; None if names always do."""
        has_ids = any(field.name == "topic_id" for field in self.topic.FIELDS)
        return first_version(self.topic, "topic_id") if has_ids else None

    def __call__(self, access: Access, request: Any) -> Verdict:
        """Remove the topics that are refused."""
        allowed, refused = self.split(access, getattr(request, self.topics[0]))
        if not refused:
            return None
        setattr(request, self.topics[0], allowed)
        if not allowed:
            return self.response(**{self.topics[1]: refused})
        return self.completed_by(refused)

    def split(self, access: Access, topics: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Return the topics that are allowed, and the parts of the response for the others."""
        allowed = []
        refused = []
        for topic in topics:
            code = self._code(access, topic)
            if code is ErrorCode.NONE:
                allowed.append(topic)
            else:
                refused.append(self.refusal(topic, code))
        return allowed, refused

    def completed_by(self, refused: list[Any]) -> Callable[[Any], Any]:
        """Return the function that adds refused topics to a response."""

        def complete(response: Any) -> Any:
            getattr(response, self.topics[1]).extend(refused)
            return response

        return complete

    def all_refused(self, request: Any, code: ErrorCode) -> Any:
        """Return the response that has the same error for each partition."""
        refused = [self.refusal(topic, code) for topic in getattr(request, self.topics[0])]
        return self.response(**{self.topics[1]: refused})

    def _code(self, access: Access, topic: Any) -> ErrorCode:
        name = getattr(topic, self.name)
        if self.ids_since is not None and access.version >= self.ids_since:
            name = access.image.topic_names.get(topic.topic_id)
            if name is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        return ErrorCode.NONE if access.may_topic(self.operation, name) else _FAILED

    def refusal(self, topic: Any, code: ErrorCode = _FAILED) -> Any:
        """Return the part of a response for a topic, each partition of which has this error."""
        row = self.topic(**{self.name: getattr(topic, self.name)})
        if self.ids_since is not None:
            row.topic_id = topic.topic_id  # type: ignore[attr-defined]
        source, target = self.number
        setattr(
            row,
            self.partitions[1],
            [
                self.partition(
                    **{
                        target: item if source is None else getattr(item, source),
                        "error_code": int(code),
                        **self.values,
                    }
                )
                for item in getattr(topic, self.partitions[0])
            ],
        )
        return row
