"""The options of TLS and SASL in a pipeline file, which has no secrets itself.

A secret is in the properties file that `config` names, or in the environment variable that
`password_variable` names. Both are read when the pipeline runs.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred, deferred_module
from ottla.streams.pipelines.fields import Fields
from ottla.streams.pipelines.model import Security
from ottla.streams.pipelines.problems import suggest

if TYPE_CHECKING:
    from ottla.client.security import options as secured
else:
    secured = deferred_module("ottla.client.security.options")

_parse_properties = deferred("ottla.client.config.properties", "parse_properties")
_CONFIG, _VARIABLE, _PASSWORD = "config", "password_variable", "sasl.password"
_SECRETS = frozenset(
    {
        "sasl.jaas.config",
        _PASSWORD,
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.password",
    }
)


def read_security(fields: Fields) -> Security | None:
    """Return the mapping `security` of a pipeline or a sink; None if it is absent."""
    if "security" not in fields:
        return None
    texts = fields.pairs("security")
    known = (_CONFIG, _VARIABLE, *(secured.SECURITY_OPTIONS.keys() - _SECRETS))
    for name, text in texts.items():
        if name in _SECRETS:
            advice = (
                f"do not write {name} into a file: name a properties file that contains it with "
                f"{_CONFIG}, or the environment variable that contains the password with {_VARIABLE}."
            )
            fields.problems.error(text.position, f"{fields.subject}: security: {advice}")
        elif name not in known:
            unknown = f"unknown key {name}. {suggest(name, known)}"
            fields.problems.error(text.position, f"{fields.subject}: security: {unknown}")
    return Security(
        options={
            name: text.text for name, text in texts.items() if name in secured.SECURITY_OPTIONS
        },
        config=texts[_CONFIG].text if _CONFIG in texts else "",
        password_variable=texts[_VARIABLE].text if _VARIABLE in texts else "",
    )


def resolved_security(security: Security | None, subject: str) -> dict[str, str]:
    """Return the options with their secrets; none for plain text.

    Raises ConfigError if the file cannot be read, if the environment variable is not set, or if the
    options are wrong.
    """
    if security is None:
        return {}
    options: dict[str, str] = {}
    if security.config:
        try:
            text = Path(security.config).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ConfigError(f"{subject}: {security.config} cannot be read: {reason}.") from error
        options = secured.security_options(
            _parse_properties(text, security.config, needs_values=False)
        )
    options |= security.options
    if security.password_variable:
        password = os.environ.get(security.password_variable)
        if password is None:
            raise ConfigError(
                f"{subject}: the environment variable {security.password_variable}, which holds the "
                "password, is not set."
            )
        options[_PASSWORD] = password
    try:
        secured.security_of(options)
    except ConfigError as error:
        raise ConfigError(f"{subject}: {error}") from error
    return options
