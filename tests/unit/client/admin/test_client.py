"""AdminClient: its methods are the functions of ottla.client.admin."""

import inspect
import typing

import pytest

from ottla.client.admin import topics
from ottla.client.admin.client import AdminClient
from ottla.client.errors import Closed

BOUND = sorted(name for name, member in vars(AdminClient).items() if hasattr(member, "__wrapped__"))


@pytest.mark.parametrize("name", BOUND)
def test_a_method_has_signature_types_and_docstring_of_its_function(name: str) -> None:
    """Help, documentation and type checkers see them; `self` replaces the connection."""
    method = getattr(AdminClient, name)
    function = method.__wrapped__
    expected = list(inspect.signature(function).parameters.values())[1:]
    first, *parameters = inspect.signature(method).parameters.values()
    assert (first.name, parameters) == ("self", expected)
    assert typing.get_type_hints(method) == {
        key: value for key, value in typing.get_type_hints(function).items() if key != "brokers"
    }
    assert inspect.getdoc(method) == inspect.getdoc(function)
    assert (method.__name__, method.__qualname__) == (name, f"AdminClient.{name}")


def test_most_methods_are_functions_of_the_package() -> None:
    """Otherwise the test above would check nothing."""
    assert len(BOUND) > 40
    assert inspect.unwrap(AdminClient.create_topic) is topics.create_topic


def test_a_closed_client_sends_no_request() -> None:
    """Each method of a closed client raises Closed; closing it again has no effect."""
    admin = AdminClient(bootstrap_servers="127.0.0.1:1")
    admin.close()
    admin.close()
    for call in (lambda: admin.create_topic("t"), admin.list_topics):
        with pytest.raises(Closed, match="the admin client is closed: create a new one"):
            call()
