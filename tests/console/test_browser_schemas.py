"""The pages of a schema registry in Chromium."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.console.chromium import Watched
from tests.console.test_schemas import server_of
from tests.unit.client.schemas.registered import (
    register_avro,
    register_json_with_reference,
    register_protobuf,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAGES = {"schemas": "/c/local/schemas", "schema": "/c/local/schema?id=visits-value"}


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[ConsoleServer]:
    """Return a console with a registry that has a schema of each kind."""
    with FakeSchemaRegistry() as registry:
        register_avro(registry, "orders-value")
        register_protobuf(registry, "payments-value")
        register_json_with_reference(registry, "visits-value")
        server = server_of(cluster, registry.url)
        server.start()
        yield server
        server.stop()


@pytest.mark.parametrize("name", PAGES)
def test_page_of_schemas_has_no_error_and_no_barrier(
    page: Page, watched: Watched, name: str
) -> None:
    """The page loads, axe-core finds no serious violation, and it fits a phone."""
    page.goto(PAGES[name])
    expect(page.locator("main")).to_contain_text("city")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert watched.violations() == []
    watched.picture(name, is_dark=True)
    watched.expect_to_fit_a_phone()


def test_a_reference_leads_to_its_schema(page: Page) -> None:
    """From the list to a subject, and from its reference to the other subject."""
    page.goto(PAGES["schemas"])
    page.get_by_role("link", name="visits-value").click()
    expect(page.get_by_role("heading", name="visits-value")).to_be_visible()
    page.get_by_role("link", name="city 1").click()
    expect(page.get_by_role("heading", name="city")).to_be_visible()
