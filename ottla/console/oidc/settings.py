"""The table `oidc` of `console.toml`: the identity provider, and the roles of its groups. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role, parse_role

CALLBACK_PATH = "/oidc/callback"
_TEXTS = ("issuer", "client_id", "client_secret_file", "url", "user_claim", "roles_claim", "name")
_SCOPES = ("openid", "profile", "email")
_NAMES = (*_TEXTS, "scopes", "roles", "default_role")


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider.

    `url` is the address of the console in browsers. `roles` are by the values of `roles_claim`; a
    user with several has the highest one, and a user with none has `default_role`, or may not log
    in if that is None. Without `client_secret` the client is public: PKCE protects the code.
    """

    issuer: str
    client_id: str
    url: str
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = _SCOPES
    user_claim: str = "preferred_username"
    roles_claim: str = "groups"
    roles: Mapping[str, Role] = field(default_factory=dict)
    default_role: Role | None = None
    name: str = "OpenID Connect"

    @property
    def redirect_uri(self) -> str:
        """The address to which the provider sends the browser back."""
        return self.url.rstrip("/") + CALLBACK_PATH

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """Return the role of a user with these claims; None if the user may not log in."""
        value = claims.get(self.roles_claim)
        names: Iterable[Any] = value if isinstance(value, list) else [value]
        roles = [self.roles[name] for name in names if isinstance(name, str) and name in self.roles]
        return max(roles, default=self.default_role)


def parse_oidc(table: Mapping[str, Any], secret: str) -> OidcSettings:
    """Return the settings of the table; ConfigError names a value that is missing or wrong."""
    if unknown := sorted(set(table) - set(_NAMES)):
        raise ConfigError(f"oidc.{unknown[0]} is unknown: only {', '.join(_NAMES)} exist")
    for name in _TEXTS:
        if not isinstance(table.get(name, ""), str):
            raise ConfigError(f"oidc.{name} must be a text")
    for name in ("issuer", "client_id", "url"):
        if not table.get(name):
            raise ConfigError(f"oidc.{name} is missing")
    for name in ("issuer", "url"):
        check_url(f"oidc.{name}", table[name])
    roles = table.get("roles", {})
    if not isinstance(roles, dict):
        raise ConfigError("oidc.roles must be a table of roles with arrays of names")
    scopes = table.get("scopes", list(_SCOPES))
    if not _is_texts(scopes) or "openid" not in scopes:
        raise ConfigError("oidc.scopes must be an array of texts with openid")
    default = table.get("default_role", "")
    return OidcSettings(
        table["issuer"],
        table["client_id"],
        table["url"],
        secret,
        tuple(scopes),
        table.get("user_claim", "preferred_username"),
        table.get("roles_claim", "groups"),
        _roles(roles),
        _role(default) if default else None,
        table.get("name", "OpenID Connect"),
    )


def check_url(name: str, url: str) -> None:
    """Raise ConfigError unless a URL is encrypted, or on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return
    raise ConfigError(f"{name} is {url!r}: use https, or http on a loopback address")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _roles(table: Mapping[str, Any]) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for label, names in table.items():
        role = _role(label)
        if not _is_texts(names):
            raise ConfigError(f"oidc.roles.{label} must be an array of texts")
        for name in names:
            roles[name] = max(role, roles.get(name, role))
    return roles


def _role(label: Any) -> Role:
    try:
        return parse_role(label)
    except ValueError as error:
        raise ConfigError(f"oidc: {error}") from None


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
