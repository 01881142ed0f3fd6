"""Creation of a topic that a request needs, by a broker that is not the controller.

Follows DefaultAutoTopicCreationManager: a CreateTopics request to the controller.
"""

import asyncio

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.requests import TopicRequest
from ottla.server.brokers.controller_link import ControllerLink
from ottla.server.brokers.remote import known_code
from ottla.server.local_broker import LocalBroker
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_VERSION = 7
_TIMEOUT_MS = 30_000
_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
# The controller is changing, or this broker does not know it yet: the client tries again.
_PASSING = (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE)


class TopicsElsewhere:
    """Has the controller create topics."""

    def __init__(self, link: ControllerLink, notices: LocalBroker) -> None:
        self._link = link
        self._notices = notices

    async def ensure(self, topic: TopicRequest) -> bool:
        """Create a topic unless it exists, and wait until this broker knows it.

        Returns True if the controller has created it for this request.
        ApiError LEADER_NOT_AVAILABLE if the controller cannot be reached, or with the reason.
        """
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.config.items()
                    ],
                )
            ],
            timeout_ms=_TIMEOUT_MS,
        )
        try:
            response = await self._link.request(request, _VERSION, CreateTopicsResponse)
        except ApiError as error:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, error.message) from error
        result = response.topics[0]
        code = known_code(result.error_code)
        if code in _PASSING:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, result.error_message)
        if code not in _CREATED:
            raise ApiError(code, result.error_message)
        try:
            async with asyncio.timeout(_TIMEOUT_MS / 1000):
                await self._notices.wait_for_topic(topic.name)
        except TimeoutError as error:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE) from error
        return code is ErrorCode.NONE
