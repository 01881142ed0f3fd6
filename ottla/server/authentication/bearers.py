"""The checks of tokens of OAUTHBEARER, from the options of each listener.

Only brokers with OAUTHBEARER import this module, and only those with signed tokens import joserfc.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.cluster.options.security_options import BearerOptions, ListenerSecurity
from ottla.security import oauth
from ottla.security.oauth import OAuthExchange, UnsecuredRules, Validate

if TYPE_CHECKING:
    from ottla.security import signed_tokens
else:
    signed_tokens = deferred_module("ottla.security.signed_tokens")

_log = logging.getLogger(__name__)

_OPTION = "unsecuredValidator"


class Bearers:
    """Begins the exchanges of OAUTHBEARER; raises ConfigError if keys cannot be read."""

    def __init__(
        self, listeners: Mapping[str, ListenerSecurity], files: FileSystem, clock: Clock
    ) -> None:
        self._validators = {
            name: _validator(name, security.bearer, files, clock)
            for name, security in listeners.items()
            if security.bearer is not None
        }

    def begin(self, listener: str) -> OAuthExchange:
        """Return a new exchange."""
        return OAuthExchange(self._validators[listener])


def _validator(name: str, options: BearerOptions, files: FileSystem, clock: Clock) -> Validate:
    if options.keys_path:
        return _signed(name, options, files, clock)
    module = options.module
    rules = UnsecuredRules(
        module.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub",
        module.get(f"{_OPTION}ScopeClaimName", "").strip() or "scope",
        tuple(module.get(f"{_OPTION}RequiredScope", "").split()),
        int(module.get(f"{_OPTION}AllowableClockSkewMs", "0")),
    )
    return lambda token: oauth.unsecured(token, rules, clock.time_ms())


def _signed(name: str, options: BearerOptions, files: FileSystem, clock: Clock) -> Validate:
    keys = _KeyFile(options.keys_path, files)
    try:
        keys.read()
    except ImportError as error:
        raise ConfigError(
            f"The listener {name} has tokens with a signature, which needs joserfc: run pip install "
            "'ottla[oauth]'"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The listener {name} cannot read the keys of {options.keys_path}: {error}"
        ) from error
    rules = signed_tokens.SignedRules(
        options.audiences, options.issuer, options.clock_skew_seconds, options.principal_claim
    )
    return lambda token: signed_tokens.signed(token, keys.current(), rules, clock.time_ms())


class _KeyFile:
    """The keys of a file, which is read again when it has changed: issuers replace their keys."""

    def __init__(self, path: str, files: FileSystem) -> None:
        self._path = path
        self._files = files
        self._modified_ms = -1
        self._keys: signed_tokens.Keys | None = None

    def read(self) -> None:
        """Read the file; raises OSError or ValueError."""
        modified_ms = self._files.modified_ms(self._path)
        if modified_ms != self._modified_ms:
            self._keys = signed_tokens.read_keys(self._files.read(self._path))
            self._modified_ms = modified_ms

    def current(self) -> "signed_tokens.Keys":
        """Return the keys of the file as it is now, or the last ones that could be read."""
        try:
            self.read()
        except (OSError, ValueError) as error:
            _log.warning("keys not read path=%s error=%s", self._path, error)
        assert self._keys is not None, "the keys were read at the start"
        return self._keys
