"""The two addresses of a login with an identity provider: to it, and back from it.

Not done: the end of the provider's session at a logout (RP-initiated logout).
"""

from urllib.parse import parse_qs

from ottla.base.errors import ConfigError
from ottla.console.accounts.audit import Actor
from ottla.console.accounts.users import AccountError
from ottla.console.oidc.provider import (
    IdentityProvider,
    LoginFailed,
    PendingLogin,
    ProviderUser,
)
from ottla.console.state import Console
from ottla.console.web.login import login_form
from ottla.console.web.requests import (
    SESSION_COOKIE,
    Cookie,
    Reply,
    Request,
    is_local_path,
    redirect,
)
from ottla.console.web.respond import language_of

LOGIN_PATH = "/oidc/login"
# Binds the response of the provider to the browser that has begun the login.
_BROWSER_COOKIE = "ottla_oidc"
_BROWSER_S = 600


def begin_login(console: Console, request: Request) -> Reply:
    """Send the browser to the identity provider."""
    provider = console.identity_provider
    if provider is None:
        return redirect("/login")
    target = parse_qs(request.query).get("next", ["/"])[0]
    login = console.oidc_logins.begin(target if is_local_path(target) else "/")
    try:
        url = provider.authorization_url(login.state, login.pending, login.challenge)
    except (LoginFailed, ConfigError) as error:
        return login_form(console, request, str(error), 503)
    return redirect(url, Cookie(_BROWSER_COOKIE, login.browser, _BROWSER_S))


def finish_login(console: Console, request: Request) -> Reply:
    """Log the user in for whom the identity provider has issued the code of the address."""
    provider = console.identity_provider
    if provider is None:
        return redirect("/login")
    query = {name: values[0] for name, values in parse_qs(request.query).items()}
    say = language_of(request).say
    browser = request.cookies.get(_BROWSER_COOKIE, "")
    login = console.oidc_logins.take(query.get("state", ""), browser)
    if login is None:
        return login_form(
            console, request, say("This login has expired, or began elsewhere: log in again."), 403
        )
    try:
        identity = _identity(provider, query, login.pending)
        name = _name_of(provider, identity)
        role = provider.settings.role_of(identity.claims)
        if role is None:
            raise LoginFailed(f"no role of the console is for the groups of {name!r}: ask an admin")
        user = console.oidc_logins.log_in(identity, name, role)
    except (LoginFailed, AccountError, ConfigError) as error:
        actor = Actor("", request.client)
        console.audit.write(actor, "login", target="oidc", result=str(error))
        return login_form(console, request, say("The login failed: {reason}", reason=error), 403)
    actor = Actor(user.name, request.client)
    details = {"issuer": identity.issuer, "subject": identity.subject, "role": role.label}
    console.audit.write(actor, "login", target="oidc", details=details)
    cookies = (
        Cookie(SESSION_COOKIE, console.sessions.open(user.name)),
        Cookie(_BROWSER_COOKIE, "", 0),
    )
    return redirect(login.next, *cookies)


def _identity(
    provider: IdentityProvider, query: dict[str, str], pending: PendingLogin
) -> ProviderUser:
    if reason := query.get("error"):
        raise LoginFailed(query.get("error_description", reason)[:200])
    # RFC 9207: another provider's response must not be taken for that of this one.
    if query.get("iss", provider.settings.issuer) != provider.settings.issuer:
        raise LoginFailed(f"the response is from {query['iss']!r}, another identity provider")
    return provider.identity(query.get("code", ""), pending)


def _name_of(provider: IdentityProvider, identity: ProviderUser) -> str:
    claim = provider.settings.user_claim
    name = identity.claims.get(claim)
    if not isinstance(name, str) or not name:
        raise LoginFailed(f"the id token has no claim {claim!r}: change oidc.user_claim")
    # A user could enter the address of another one.
    if claim == "email" and identity.claims.get("email_verified") is False:
        raise LoginFailed(f"the address {name!r} is not verified")
    return name
