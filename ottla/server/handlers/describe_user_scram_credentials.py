"""DescribeUserScramCredentials (key 50), version 0: the SCRAM mechanisms of users (KIP-554).

Without users, or with an empty list, all that have credentials are described. The response never
has salts or keys. A credential that another program has damaged is an error of its user. Follows
Kafka's ScramImage.

Not done: nothing.
"""

from collections import Counter
from collections.abc import Mapping

from ottla.base.errors import ErrorCode
from ottla.cluster.znodes import ConfigNode
from ottla.security.scram import ScramMechanism, parse_credential
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

API = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
MIN_VERSION = 0
MAX_VERSION = 0

_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return each user's mechanisms and numbers of iterations."""
    stored = _stored(context.broker.configs.entities(ConfigNode.USERS))
    counts = Counter(user.name for user in request.users or ()) or dict.fromkeys(sorted(stored), 1)
    results = [_result(name, count, stored) for name, count in counts.items()]
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _stored(users: Mapping[str, Mapping[str, str]]) -> dict[str, dict[ScramMechanism, str]]:
    """Return the credentials by user; the default user and clients of users have no credentials."""
    stored = {}
    for path, settings in users.items():
        name = None if "/" in path else ConfigNode.desanitize(path)
        credentials = {
            mechanism: settings[mechanism.mechanism_name]
            for mechanism in ScramMechanism
            if mechanism.mechanism_name in settings
        }
        if name is not None and credentials:
            stored[name] = credentials
    return stored


def _result(
    name: str, count: int, stored: Mapping[str, Mapping[ScramMechanism, str]]
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return _error(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE + name)
    if name not in stored:
        return _error(name, ErrorCode.RESOURCE_NOT_FOUND, _UNKNOWN + name)
    try:
        infos = [
            CredentialInfo(mechanism=mechanism.code, iterations=parse_credential(text).iterations)
            for mechanism, text in stored[name].items()
        ]
    except ValueError as error:
        text = f"The stored credential of {name} cannot be read ({error}): set it again."
        return _error(name, ErrorCode.UNKNOWN_SERVER_ERROR, text)
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)


def _error(name: str, code: ErrorCode, text: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=int(code), error_message=text)
