"""Values of enumerations that no version knows are refused, also from a principal with all rights."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.server.transport.apis import ROWS
from ottla.testing import Cluster
from ottla.wire import headers
from ottla.wire.api_keys import APIS
from tests.compat.recorded import messages, notation
from tests.compat.recorded.player import Line, Target
from tests.compat.recorded.symbols import Symbols

_CREATION = (
    'resource_name: "t", principal: "User:zoe", host: "*", resource_type: {}, '
    "resource_pattern_type: {}, operation: {}, permission_type: {}"
)
_FILTER = (
    "resource_name_filter: null, principal_filter: null, host_filter: null, resource_type_filter: "
    "{}, pattern_type_filter: {}, operation: {}, permission_type: {}"
)
# One of the four enumerations of an entry has the unknown value 99, or a negative one.
_ENTRIES = [(kind, *rest) for kind in (99, -1) for rest in ((3, 3, 3),)] + [
    (2, 99, 3, 3),
    (2, -1, 3, 3),
    (2, 3, 99, 3),
    (2, 3, -1, 3),
    (2, 3, 3, 99),
    (2, 3, 3, -1),
]
_RESOURCE = 'resource_type: {}, resource_name: "seen"'
_OF_CONFIGS = (0, 1, 3, 5, 64, 99, -1)

CASES = [
    *(("FindCoordinator", f'{{key_type: {code}, coordinator_keys: ["a"]}}') for code in (2, 9, -1)),
    *(("CreateAcls", f"{{creations: [{{{_CREATION.format(*codes)}}}]}}") for codes in _ENTRIES),
    *(("DeleteAcls", f"{{filters: [{{{_FILTER.format(*codes)}}}]}}") for codes in _ENTRIES),
    *(
        ("DescribeConfigs", f"{{resources: [{{{_RESOURCE.format(code)}}}]}}")
        for code in _OF_CONFIGS
    ),
    *(("AlterConfigs", f"{{resources: [{{{_RESOURCE.format(code)}}}]}}") for code in _OF_CONFIGS),
    *(
        ("IncrementalAlterConfigs", f"{{resources: [{{{_RESOURCE.format(code)}}}]}}")
        for code in _OF_CONFIGS
    ),
    *(
        (
            "IncrementalAlterConfigs",
            f"{{resources: [{{{_RESOURCE.format(2)}, configs: [{{"
            f'name: "retention.ms", config_operation: {code}, value: "1"}}]}}]}}',
        )
        for code in (4, 99, -1)
    ),
    *(("ListConfigResources", f"{{resource_types: [2, {code}]}}") for code in (1, 99, -1)),
    *(
        (
            "AlterClientQuotas",
            f'{{entries: [{{entity: [{{entity_type: "{kind}", entity_name: "zoe"}}], '
            f'ops: [{{key: "{key}", value: 1.0}}]}}]}}',
        )
        for kind, key in (
            ("group", "producer_byte_rate"),
            ("User", "producer_byte_rate"),
            ("user", "SCRAM-SHA-512"),
            ("user", "retention.ms"),
            ("ip", "producer_byte_rate"),
        )
    ),
    *(
        (
            "DescribeClientQuotas",
            f'{{components: [{{entity_type: "{kind}", match_type: {match}, match: null}}]}}',
        )
        for kind, match in (("group", 1), ("user", 3), ("user", -1))
    ),
    *(
        ("AlterUserScramCredentials", f'{{{rows}: [{{name: "zoe", mechanism: {code}, {rest}}}]}}')
        for code in (0, 3, 99, -1)
        for rows, rest in (
            ("upsertions", 'iterations: 4096, salt: x"00"'),
            ("deletions", 'name: "z"'),
        )
    ),
    *(
        (
            "UpdateFeatures",
            '{feature_updates: [{feature: "transaction.version", max_version_level: 1, '
            f"upgrade_type: {code}}}], timeout_ms: 1000, validate_only: true}}",
        )
        for code in (0, 4, 99, -1)
    ),
    *(("ElectLeaders", f"{{election_type: {code}, timeout_ms: 1000}}") for code in (2, 99, -1)),
    (
        "CreateDelegationToken",
        '{owner_principal_type: "Group", owner_principal_name: "zoe"}',
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    """Yield a connection of a super user."""
    options = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(options=options) as cluster:
        cluster.create_topic("seen", partitions=1)
        with closing(Line(Target(cluster.host, cluster.port))) as connected:
            yield connected


@pytest.mark.parametrize(("name", "written"), CASES)
def test_unknown_value_is_refused(line: Line, name: str, written: str) -> None:
    """The response has an error, and it is neither an authorizer's nor the broker's own."""
    api = next(api for api in APIS.values() if api.name == name)
    version = next(row.handler.MAX_VERSION for row in ROWS if api.key == row.handler.API)
    line.send(messages.build(api.request, version, notation.parse(written), Symbols()), version)
    frame = line.receive()
    assert frame is not None
    _, response = headers.decode_response(api.response, version, frame)
    shown = notation.render(messages.show(response, version, Symbols()))
    assert "error_code: " in shown
    assert "AUTHORIZATION_FAILED" not in shown
    assert "UNKNOWN_SERVER_ERROR" not in shown
