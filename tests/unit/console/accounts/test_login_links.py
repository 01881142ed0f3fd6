"""The link that logs in once."""

from ottla.console.accounts.login_links import LoginLink


def test_a_link_is_valid_once() -> None:
    """A second use fails, as do other tokens and every token before the first link."""
    link = LoginLink()
    assert not link.use("")
    token = link.create()
    assert not link.use(token + "x")
    assert link.use(token)
    assert not link.use(token)


def test_a_new_link_replaces_the_former_one() -> None:
    """Only the latest link is valid."""
    link = LoginLink()
    former, latest = link.create(), link.create()
    assert not link.use(former)
    assert link.use(latest)
