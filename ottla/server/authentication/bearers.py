"""The checks of tokens of OAUTHBEARER, from the options of each listener.

Only brokers with OAUTHBEARER import this module, and only those with signed tokens import joserfc.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.loading import deferred_module
from ottla.base.logs import provoked_logger
from ottla.base.tasks import Tasks
from ottla.cluster.options.security_options import BearerOptions, ListenerSecurity
from ottla.security import oauth
from ottla.security.oauth import OAuthExchange, UnsecuredRules, Validate

if TYPE_CHECKING:
    from ottla.net.tls import contexts
    from ottla.security import signed_tokens
    from ottla.server.authentication import key_endpoint
else:
    contexts = deferred_module("ottla.net.tls.contexts")
    key_endpoint = deferred_module("ottla.server.authentication.key_endpoint")
    signed_tokens = deferred_module("ottla.security.signed_tokens")

_log = provoked_logger(__name__)

_OPTION = "unsecuredValidator"


class Bearers:
    """Begins the exchanges of OAUTHBEARER; raises ConfigError if keys cannot be read."""

    def __init__(
        self,
        listeners: Mapping[str, ListenerSecurity],
        files: FileSystem,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._files = files
        self._clock = clock
        self._tasks = tasks
        self._validators = {
            name: self._validator(name, security.bearer)
            for name, security in listeners.items()
            if security.bearer is not None
        }

    def begin(self, listener: str) -> OAuthExchange:
        """Return a new exchange."""
        return OAuthExchange(self._validators[listener])

    def _validator(self, name: str, options: BearerOptions) -> Validate:
        if options.keys_path or options.keys_url:
            return self._signed(name, options)
        module, clock = options.module, self._clock
        rules = UnsecuredRules(
            module.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub",
            module.get(f"{_OPTION}ScopeClaimName", "").strip() or "scope",
            tuple(module.get(f"{_OPTION}RequiredScope", "").split()),
            int(module.get(f"{_OPTION}AllowableClockSkewMs", "0")),
        )
        return lambda token: oauth.unsecured(token, rules, clock.time_ms())

    def _signed(self, name: str, options: BearerOptions) -> Validate:
        clock = self._clock
        try:
            keys_for = self._keys(options)
            rules = signed_tokens.SignedRules(
                options.audiences,
                options.issuer,
                options.clock_skew_seconds,
                options.principal_claim,
            )
        except ImportError as error:
            raise ConfigError(
                f"The listener {name} has tokens with a signature, which needs joserfc: run pip "
                "install 'ottla[oauth]'"
            ) from error
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"The listener {name} cannot read the keys of {options.keys_path}: {error}"
            ) from error
        return lambda token: signed_tokens.signed(token, keys_for(token), rules, clock.time_ms())

    def _keys(self, options: BearerOptions) -> "Callable[[str], signed_tokens.KeySet]":
        """Return the function that returns the keys for a token; OSError or ValueError."""
        if not options.keys_url:
            file = _KeyFile(options.keys_path, self._files)
            file.read()
            return lambda _token: file.current()
        url, files = options.keys_url, self._files
        if options.trusted is not None:
            # The start fails if the file cannot be read.
            contexts.peer_context(options.trusted, key_endpoint.TRUST_STORE)
        endpoint = key_endpoint.KeyEndpoint(
            url,
            options.refresh_ms / 1000,
            lambda: files.in_background(lambda: key_endpoint.get(url, options.trusted)),
            self._clock,
        )
        self._tasks.supervise(endpoint.run, "keys of an identity provider", url)
        return endpoint.keys_for


class _KeyFile:
    """The keys of a file, which is read again when it has changed: issuers replace their keys."""

    def __init__(self, path: str, files: FileSystem) -> None:
        self._path = path
        self._files = files
        self._modified_ms = -1
        self._keys: signed_tokens.KeySet | None = None

    def read(self) -> None:
        """Read the file; raises OSError or ValueError."""
        modified_ms = self._files.modified_ms(self._path)
        if modified_ms != self._modified_ms:
            self._keys = signed_tokens.read_keys(self._files.read(self._path))
            self._modified_ms = modified_ms

    def current(self) -> "signed_tokens.KeySet":
        """Return the keys of the file as it is now, or the last ones that could be read."""
        try:
            self.read()
        except (OSError, ValueError) as error:
            _log.warning("keys not read path=%s error=%s", self._path, error)
        assert self._keys is not None, "the keys were read at the start"
        return self._keys
