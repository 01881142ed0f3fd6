"""Each administrative API leaves one line for each changed resource, with who changed it."""

import errno
from typing import Any

import pytest

from ottla.server.audit.apis import AUDITED, NOT_AUDITED
from ottla.server.transport.apis import ROWS
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages import metadata
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.integration.server.audit.audited_broker import CLIENT_ID, FILE, AuditedBroker, ask, run
from tests.integration.server.audit.requests import (
    CASES,
    configured,
    extended,
    feature,
    quota,
    replaced,
    topic,
    topics,
)

_TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
_ALTER_CONFIGS, _DESCRIBE_CONFIGS = 11, 10


def of_api(lines: list[dict[str, Any]], key: ApiKey) -> list[dict[str, Any]]:
    """Return the lines of an API without their times."""
    rows = [{name: line[name] for name in line if name != "time"} for line in lines]
    return [row for row in rows if row.get("api") == key.name]


def test_each_served_api_is_audited_or_known_not_to_change_anything() -> None:
    """A new API needs a row in the table of audited APIs, or a place among the others."""
    served = {row.handler.API for row in ROWS}
    assert served == set(AUDITED) | NOT_AUDITED
    assert not set(AUDITED) & NOT_AUDITED
    assert {row.handler.API for row in ROWS if row.is_administrative} == set(AUDITED)
    assert set(CASES) | _TOKENS == set(AUDITED)


@pytest.mark.parametrize("key", CASES, ids=lambda key: key.name)
def test_each_change_is_one_line_with_the_principal(key: ApiKey) -> None:
    """The line has the sender, the changed resource, the rule that allowed it, and the result."""
    case = CASES[key]

    async def scenario(broker: AuditedBroker) -> None:
        root, tool = await broker.log_in("root"), await broker.log_in("root")
        await case.prepare(root)
        await ask(tool, case.request, case.version)

    lines = run(scenario)
    common = {
        "event": "change",
        "broker": 1,
        "principal": "User:root",
        "address": "client",
        "listener": "SASL_PLAINTEXT",
        "client_id": CLIENT_ID,
        "api": key.name,
        "rule": "super user",
        "result": "success",
    }
    prepared = run(lambda broker: _prepare(broker, case.prepare))
    assert of_api(lines, key)[-len(case.lines) :] == [common | row for row in case.lines]
    assert len(lines) == len(prepared) + len(case.lines)


async def _prepare(broker: AuditedBroker, prepare: Any) -> None:
    await prepare(await broker.log_in("root"))


def test_each_change_of_a_token_is_one_line_without_its_hmac() -> None:
    """A token is named by its id, also after it was deleted."""
    secrets: list[bytes] = []

    async def scenario(broker: AuditedBroker) -> None:
        ann = await broker.log_in("ann")
        renewers = [CreatableRenewers(principal_type="User", principal_name="b")]
        create = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1)
        token = await ask(ann, create, 3)
        secrets.extend([bytes(token.hmac), token.token_id.encode()])
        await ask(ann, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2)
        expire = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        await ask(ann, expire, 2)
        # There is no such token any more.
        await ask(ann, expire, 2)

    lines = run(scenario)
    hmac, token_id = secrets[0], secrets[1].decode()
    assert [(line["api"], line["result"], line.get("resource")) for line in lines] == [
        ("CREATE_DELEGATION_TOKEN", "success", token_id),
        ("RENEW_DELEGATION_TOKEN", "success", token_id),
        ("EXPIRE_DELEGATION_TOKEN", "success", token_id),
        ("EXPIRE_DELEGATION_TOKEN", "DELEGATION_TOKEN_NOT_FOUND", None),
    ]
    assert {line["principal"] for line in lines} == {"User:ann"}
    assert lines[0]["rule"] == "token of its own"
    assert lines[1]["rule"] == "owner or renewer of the token"
    assert lines[0]["details"] == {"owner": "User:ann", "renewers": ["User:b"]}
    assert not any(form in str(lines) for form in (hmac.hex(), repr(hmac)[2:-1]))


def test_rule_is_the_entry_that_allowed_the_change() -> None:
    """The entry is named as it was when the request was checked."""

    async def scenario(broker: AuditedBroker) -> None:
        root, ann = await broker.log_in("root"), await broker.log_in("ann")
        await topic(root)
        for operation in (_DESCRIBE_CONFIGS, _ALTER_CONFIGS):
            await broker.allow(root, operation, "t")
        await ask(ann, configured(0, "retention.ms", "1000"), 1)

    (line,) = of_api(run(scenario), ApiKey.INCREMENTAL_ALTER_CONFIGS)
    assert (line["principal"], line["result"]) == ("User:ann", "success")
    assert line["rule"] == "ALLOW ALTER_CONFIGS to User:ann from * on LITERAL TOPIC t"


def test_topic_that_is_created_on_first_use_is_audited() -> None:
    """A request for metadata may change the cluster, too; two requests create one topic."""

    async def scenario(broker: AuditedBroker) -> None:
        root = await broker.log_in("root")
        request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="new")])
        for _ in range(2):
            await ask(root, request, 9)

    (line,) = run(scenario)
    assert (line["api"], line["operation"], line["resource"]) == ("METADATA", "CREATE", "new")
    assert (line["principal"], line["rule"]) == ("User:root", "super user")


def test_validation_changes_nothing_and_leaves_no_line() -> None:
    """A dry run is no change."""

    async def scenario(broker: AuditedBroker) -> None:
        root = await broker.log_in("root")
        await topic(root)
        await ask(root, topics("a", validate_only=True), 7)
        await ask(root, extended(validate_only=True), 3)
        await ask(root, replaced(validate_only=True), 2)
        await ask(root, configured(0, "retention.ms", "1", validate_only=True), 1)
        await ask(root, quota(validate_only=True), 1)
        await ask(root, feature(validate_only=True), 1)

    assert [line["resource"] for line in run(scenario)] == ["t"]


def test_failed_change_has_the_name_of_its_error() -> None:
    """An attempt is audited, too; repeated ones are counted."""

    async def scenario(broker: AuditedBroker) -> None:
        root = await broker.log_in("root")
        for _ in range(4):
            await topic(root)

    lines = run(scenario)
    assert [line["result"] for line in lines] == ["success", "TOPIC_ALREADY_EXISTS", "failed"]
    assert lines[-1]["suppressed"] == 2


def test_values_that_may_be_secret_are_hidden() -> None:
    """An option that the tables do not know may hold a password that was set by mistake."""

    async def scenario(broker: AuditedBroker) -> None:
        root = await broker.log_in("root")
        await topic(root)
        await ask(root, configured(0, "my.password", "hunter2"), 1)

    (line,) = of_api(run(scenario), ApiKey.INCREMENTAL_ALTER_CONFIGS)
    assert line["details"] == {"my.password": "(hidden)"}


def test_full_disk_does_not_stop_the_broker() -> None:
    """Changes are made, their lines are lost, and the number of lost lines is kept."""

    async def scenario(broker: AuditedBroker) -> None:
        faults = broker.machine.files.faults
        faults.fail("append", path=FILE, error=errno.ENOSPC, times=-1)
        root = await broker.log_in("root")
        response = await ask(root, topics("a", "b"), 7)
        assert [row.error_code for row in response.topics] == [0, 0]
        await broker.stop()
        assert broker.node is not None
        assert broker.node.broker.audit.lost_count == 2

    assert run(scenario) == []


def test_events_can_be_switched_off() -> None:
    """An empty option writes nothing."""

    async def scenario(broker: AuditedBroker) -> None:
        await topic(await broker.log_in("root"))
        with pytest.raises(ConnectionRefusedError):
            await broker.log_in("root", "wrong")

    assert run(scenario, audit_log_events="") == []
