"""Configurations: describe and change them."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError
from ottla.client.admin.configs import (
    ConfigSource,
    Resource,
    ResourceType,
    alter_config,
    describe_config,
)
from ottla.client.brokers import Brokers
from ottla.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

TOPIC = Resource(ResourceType.TOPIC, "t")


def test_options_are_described_by_name_with_their_source(cluster: Any, brokers: Brokers) -> None:
    """A source that this version does not know is no error."""
    cluster.answers["DescribeConfigs"] = lambda request: DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                configs=[
                    DescribeConfigsResourceResult(name="b", value="2", config_source=1),
                    DescribeConfigsResourceResult(name="a", value=None, config_source=99),
                ]
            )
        ]
    )
    description = describe_config(brokers, TOPIC)
    assert [(row.name, row.value, row.source) for row in description] == [
        ("a", None, ConfigSource.UNKNOWN),
        ("b", "2", ConfigSource.DYNAMIC_TOPIC_CONFIG),
    ]


def test_options_are_set_and_unset_in_one_request(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The broker applies both or none."""
    cluster.answers["IncrementalAlterConfigs"] = lambda request: IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse()]
    )
    alter_config(brokers, TOPIC, assign={"a": "1"}, delete=["b"])
    (sent,) = asked("IncrementalAlterConfigs").resources
    changes = [(row.name, row.config_operation, row.value) for row in sent.configs]
    assert changes == [("a", 0, "1"), ("b", 1, None)]


def test_error_for_an_invalid_value_has_the_brokers_message(cluster: Any, brokers: Brokers) -> None:
    """The broker's message names the option and its valid values."""
    cluster.answers["IncrementalAlterConfigs"] = lambda request: IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(error_code=40, error_message="a must be a number")]
    )
    with pytest.raises(ApiError, match="a must be a number"):
        alter_config(brokers, TOPIC, assign={"a": "x"})
