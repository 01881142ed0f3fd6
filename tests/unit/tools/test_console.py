"""The clusters that the options of `ottla console` describe."""

import pytest

from ottla.base.errors import ConfigError
from ottla.tools.console.running import clusters_of


def test_clusters_have_their_ensembles_and_http_ports() -> None:
    """Options of one cluster do not apply to another."""
    first, second = clusters_of(
        ("a=k1:9092", "b=k2:9092,k3:9092"),
        {"b": "z1:2181"},
        {"a/1": "http://k1:9644/", "a/2": "https://k4"},
    )
    assert (first.name, first.zookeeper) == ("a", None)
    assert first.http_urls == {1: "http://k1:9644", 2: "https://k4"}
    assert (second.bootstrap, second.zookeeper, second.http_urls) == (
        "k2:9092,k3:9092",
        "z1:2181",
        {},
    )


@pytest.mark.parametrize(
    ("zookeepers", "http_urls", "message"),
    [
        ({"c": "z:2181"}, {}, "--zookeeper names 'c', which no --cluster has"),
        ({}, {"c/1": "http://k"}, "--http-url names 'c', which no --cluster has"),
        ({}, {"a": "http://k"}, "not of the form NAME/BROKER=URL"),
        ({}, {"a/one": "http://k"}, "not of the form NAME/BROKER=URL"),
        ({}, {"a/1": "k:9644"}, "not of the form NAME/BROKER=URL"),
    ],
    ids=["ensemble", "port", "no broker", "no number", "no scheme"],
)
def test_a_wrong_option_is_named(
    zookeepers: dict[str, str], http_urls: dict[str, str], message: str
) -> None:
    """The message says how the option is written."""
    with pytest.raises(ConfigError, match=message):
        clusters_of(("a=k1:9092",), zookeepers, http_urls)
