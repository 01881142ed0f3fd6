"""AlterUserScramCredentials (key 51), version 0: set and delete credentials of users (KIP-554).

The tree keeps keys that are derived from the salted password, as Apache Kafka 3.9 does, below
/config/users. Each user is changed once in a request: a second change is DUPLICATE_RESOURCE, and
then neither is made. Follows Kafka's ScramControlManager.

Not done: nothing.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.znodes import ConfigNode
from ottla.controller.planning.requests import Alteration, ConfigChange, ConfigRequest
from ottla.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism, credential_of
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

API = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
MIN_VERSION = 0
MAX_VERSION = 0
PROPERTIES = ApiProperties(is_administrative=True)

_Row = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change one user after the other; the response names each once."""
    changes: dict[str, ConfigChange] = {}
    errors: dict[str, ApiError] = {}
    rows: list[_Row] = [*request.deletions, *request.upsertions]
    slices = Slices(context.broker.clock)
    for row in rows:
        await slices.pause()
        name = row.name
        if name in errors:
            continue
        if changes.pop(name, None) is not None:
            errors[name] = ApiError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
            continue
        try:
            changes[name] = await _change(context, row)
        except ApiError as error:
            errors[name] = error
    outcomes = {name: await _alter(context, name, change) for name, change in changes.items()}
    return AlterUserScramCredentialsResponse(
        results=[_result(name, error) for name, error in (outcomes | errors).items()]
    )


async def _change(context: RequestContext, row: _Row) -> ConfigChange:
    """Return the change of the user's node; raises ApiError if the row is not valid."""
    mechanism = ScramMechanism.of_code(row.mechanism)
    if not row.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(row, ScramCredentialUpsertion):
        if row.iterations < ITERATIONS_MIN:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if row.iterations > ITERATIONS_MAX:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        credential = credential_of(mechanism, row.salt, row.salted_password, row.iterations)
        return ConfigChange(mechanism.mechanism_name, Alteration.SET, credential.text())
    path = ConfigNode.sanitize(row.name)
    # Another broker may have just written it.
    await context.broker.configs.refresh(ConfigNode.USERS, path)
    settings = context.broker.configs.entities(ConfigNode.USERS).get(path, {})
    if mechanism.mechanism_name not in settings:
        raise ApiError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    return ConfigChange(mechanism.mechanism_name, Alteration.DELETE)


async def _alter(context: RequestContext, name: str, change: ConfigChange) -> ApiError | None:
    path = ConfigNode.sanitize(name)
    (result,) = await context.broker.controller.alter_configs(
        [ConfigRequest(ConfigNode.USERS, path, (change,))]
    )
    if result.error is None:
        await context.broker.configs.refresh(ConfigNode.USERS, path)
    return result.error


def _result(name: str, error: ApiError | None) -> AlterUserScramCredentialsResult:
    result = AlterUserScramCredentialsResult(user=name, error_message=None)
    if error is not None:
        result.error_code, result.error_message = int(error.code), error.message
    return result
