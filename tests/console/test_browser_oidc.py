"""Logins with an identity provider that others have written, in a browser: it requires PKCE."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, expect

from ottla.console.accounts.roles import Role
from ottla.console.oidc.provider import IdentityProvider
from ottla.console.oidc.settings import OidcSettings
from ottla.console.server import ConsoleServer
from tests.console.chromium import DESKTOP
from tests.console.oidc_provider import CLIENT_ID, SECRET, provider

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium", "node")]


@pytest.fixture(scope="module")
def issuer(console: ConsoleServer) -> Iterator[str]:
    """Return the issuer of a provider whose users may log in to the console."""
    with provider(console.url) as issuer:
        settings = OidcSettings(
            issuer,
            CLIENT_ID,
            console.url,
            SECRET,
            roles={"kafka-admins": Role.ADMIN, "kafka-readers": Role.VIEWER},
        )
        own = console.console
        own.settings = replace(own.settings, oidc=settings)
        own.identity_provider = IdentityProvider(settings, own.clock)
        yield issuer


@pytest.mark.parametrize(
    ("name", "role", "reason"),
    [
        ("ann", Role.ADMIN, ""),
        ("ben", Role.VIEWER, ""),
        ("eve", None, "no role of the console is for the groups of 'eve'"),
        # The console's own admin has this name.
        ("admin", None, "the console has another user 'admin'"),
    ],
)
def test_a_user_logs_in_with_the_role_of_its_groups(
    browser: Browser, console: ConsoleServer, issuer: str, name: str, role: Role | None, reason: str
) -> None:
    """The page that the user wanted is shown; others are refused with the reason, and audited."""
    context = browser.new_context(viewport=DESKTOP, base_url=console.url)
    page = context.new_page()
    try:
        page.goto("/c/local/topics")
        page.get_by_role("link", name="Log in with OpenID Connect").click()
        page.get_by_placeholder("Enter any login").fill(name)
        page.get_by_placeholder("and password").fill("x")
        page.get_by_role("button", name="Sign-in").click()
        page.get_by_role("button", name="Continue").click()
        if role is None:
            expect(page.get_by_role("alert")).to_contain_text(reason)
            assert page.get_by_label("User").is_visible()
        else:
            expect(page.get_by_role("heading", name="Topics")).to_be_visible()
            user = console.console.users.find(name)
            assert user is not None
            assert user.role is role
            assert console.console.users.login(name, "x") is None
        entry = console.console.audit.entries(text="login")[0]
        assert entry.target == "oidc"
        assert (entry.result == "ok") is (role is not None)
    finally:
        context.close()
