"""Settings of a client: from a dict or file and keyword arguments to librdkafka's and our own."""

import difflib
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.bootstrap import DEFAULT_BOOTSTRAP, bootstrap_text
from ottla.client.config.choices import check_value, reset_age_ms
from ottla.client.config.classes import assignors_of
from ottla.client.config.names import (
    IGNORED,
    KNOWN,
    OF_THE_OTHER,
    OWN,
    RENAMED,
    Role,
    dotted,
)
from ottla.client.config.properties import parse_properties
from ottla.client.security.options import (
    HOST_CHECK,
    LOGIN_OPTIONS,
    NO_HOST_CHECK,
    librdkafka_login,
    pem_key_store,
)
from ottla.client.security.tls_policy import POLICY_OPTIONS, librdkafka_policy

Config = Mapping[str, Any] | str | Path | None
"""Kafka's option names with their values, or the path of a .properties file."""


class FileOptions(dict[str, Any]):
    """Options of a .properties file, which may also have options of other clients and plug-ins."""


_ALIASES = {
    "interceptors": "interceptor.classes",
    "partitioner": "partitioner.class",
    "sasl.mechanisms": "sasl.mechanism",
}
# host:port, …
_ADDRESSES = re.compile(r"[^/\\\s,]+:\d+(\s*,\s*[^/\\\s,]+:\d+)*")
_BUFFERS = ("receive.buffer.bytes", "send.buffer.bytes")
_PROVIDERS = "config.providers"
_LONGEST_REFRESH_MS = 3_600_000
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one client: `native` for librdkafka, `own` for Ottla's part.

    `merged` has every setting under Kafka's name, for the `configure` methods of plug-ins.
    `in_file` has the names of those from a file.
    """

    native: dict[str, Any]
    own: dict[str, Any]
    merged: dict[str, Any]
    in_file: frozenset[str] = frozenset()

    @property
    def has_plug_ins(self) -> bool:
        """True if a serializer, a partitioner or an interceptor is configured with the settings."""
        return any(map(_is_configured, self.own.values()))

    def number(self, name: str, default: float) -> float:
        """Return a number among `own`; ConfigError if it is none."""
        value = self.own.get(name, default)
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise ConfigError(f"{name}={reprlib.repr(value)} is not a number")
        return number

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value among `own`; ConfigError if it is none."""
        value = self.own.get(name, default)
        if isinstance(value, str):
            value = _WORDS.get(value.strip().lower(), value)
        if not isinstance(value, bool):
            raise ConfigError(f"{name}={value!r} must be true or false")
        return value


def read_settings(role: Role, config: Config, keywords: Mapping[str, Any]) -> ClientSettings:
    """Return the settings of a client; keyword arguments override `config`.

    Raises ConfigError for a missing or malformed file, and for names that belong to another kind of
    client. In files such names are ignored: one file may serve all clients.
    """
    if isinstance(config, str | Path):
        config = _from_file(config)
    elif not isinstance(config, Mapping | None):
        raise ConfigError(f"{config!r} is no dict of options, and no path of a .properties file")
    is_file = isinstance(config, FileOptions)
    words = _dotted({name: value for name, value in keywords.items() if value is not None})
    merged = _dotted(config or {})
    in_file = merged.keys() - words.keys() if is_file else ()
    merged.update(words)
    merged = {_ALIASES.get(name, name): value for name, value in merged.items()}
    merged.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    merged["bootstrap.servers"] = addresses_of(merged["bootstrap.servers"])
    if _PROVIDERS in merged:
        raise ConfigError(f"{_PROVIDERS} is not supported: write the values instead of ${{…}}")
    if role is Role.ADMIN:
        _check_names_of_admin(merged, set() if is_file else set(merged), keywords)
        return ClientSettings({}, merged, merged)
    own = {name: value for name, value in merged.items() if name in OWN[role]}
    native: dict[str, Any] = dict(librdkafka_policy(merged))
    for name, value in merged.items():
        if name in OWN[role] or name in IGNORED or name in POLICY_OPTIONS:
            continue
        if name in OF_THE_OTHER[role]:
            if is_file and dotted(name) not in map(dotted, keywords):
                continue
            other = Role.CONSUMER if role is Role.PRODUCER else Role.PRODUCER
            raise ConfigError(f"{name!r} is an option of a {other.value}, not of a {role.value}")
        if not _is_level_of_another_codec(name, merged.get("compression.type")):
            native.update(_native(role, name, value))
    pem = pem_key_store(merged)
    if pem is not None:
        del native["ssl.keystore.location"]
        native |= {"ssl.certificate.location": pem, "ssl.key.location": pem}
    return ClientSettings(native, own, merged, frozenset(in_file))


def _is_configured(value: Any) -> bool:
    rows = value if isinstance(value, list | tuple) else [value]
    return any(hasattr(row, "configure") for row in rows)


def is_ignored(role: Role, settings: ClientSettings, name: str) -> bool:
    """Return True if an unknown option is for a plug-in, or in a file that others read, too.

    As in Kafka, it is no error then, unless it seems to be misspelled, or concerns security.
    """
    is_extra = settings.has_plug_ins or name in settings.in_file
    return is_extra and not name.startswith(("sasl.", "security.", "ssl.")) and not hint(role, name)


def _check_names_of_admin(
    merged: Mapping[str, Any], given: set[str], keywords: Mapping[str, Any]
) -> None:
    """Raise ConfigError for an unknown option; in a file only if it seems to be misspelled."""
    given |= set(map(dotted, keywords))
    for name in merged.keys() - OWN[Role.ADMIN] - IGNORED:
        if name.startswith(("sasl.", "ssl.")):
            continue
        suggestion = "" if name in OF_THE_OTHER[Role.ADMIN] else hint(Role.ADMIN, name)
        if suggestion or name in given:
            kind = Role.ADMIN.value
            raise ConfigError(f"{name!r} is not an option of an {kind}{suggestion}")


def hint(role: Role, name: str) -> str:
    """Return a suggestion for a misspelled option, or an empty text."""
    near = difflib.get_close_matches(name, KNOWN[role], 1, 0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    for name in settings:
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is not the name of an option: use a text")
    return {dotted(name): value for name, value in settings.items()}


def _from_file(path: str | Path) -> FileOptions:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"the settings in {str(path)!r} are not UTF-8 text: name a .properties file"
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and _ADDRESSES.fullmatch(str(path)):
            raise ConfigError(
                f"{str(path)!r} is an address, and the first argument is a file of settings: pass "
                f"bootstrap_servers={str(path)!r}"
            ) from error
        is_system = isinstance(error, OSError)
        reason = error if is_system else "no file has a name with a NUL character"
        raise ConfigError(f"the settings in {str(path)!r} cannot be read: {reason}") from error
    return FileOptions(parse_properties(text, str(path)))


def addresses_of(value: Any) -> str:
    """Return the addresses of brokers as one text, from a text or a list of texts; ConfigError for
    other values.
    """
    rows = [value] if isinstance(value, str) else value
    if not isinstance(rows, Iterable) or not all(isinstance(row, str) for row in rows):
        raise ConfigError(
            f"bootstrap.servers={value!r} is not a text or a list of texts: write host:port"
        )
    text = ",".join(rows)
    check_value("bootstrap.servers", text)
    return bootstrap_text(text)


def _is_level_of_another_codec(name: str, codec: Any) -> bool:
    parts = name.split(".")
    is_level = len(parts) == 3 and parts[0] == "compression" and parts[2] == "level"
    return is_level and parts[1] != codec


def _native(role: Role, name: str, value: Any) -> dict[str, Any]:
    check_value(name, value)
    if name in _BUFFERS and str(value) == "-1":
        # The system's own size.
        return {RENAMED[name]: 0}
    if name == "request.timeout.ms" and role is Role.CONSUMER:
        return {"socket.timeout.ms": value}
    if name == HOST_CHECK:
        return {name: value or NO_HOST_CHECK}
    if name == "buffer.memory":
        # librdkafka also limits the number of records, which bounds the memory of tiny ones.
        return {"queue.buffering.max.kbytes": max(1, int(value) // 1024)}
    if name == "metadata.max.age.ms":
        # librdkafka's option of this name is the age of its cache, which then is three times this.
        interval_ms = min(int(value), _LONGEST_REFRESH_MS)
        return {"topic.metadata.refresh.interval.ms": interval_ms}
    if name == "partition.assignment.strategy":
        return {name: assignors_of(value)}
    if name in LOGIN_OPTIONS:
        return librdkafka_login(name, str(value))
    if name.startswith("compression.") and name.endswith(".level"):
        return {"compression.level": value}
    if name == "auto.offset.reset":
        is_error = value == "none" or reset_age_ms(value) is not None
        return {name: "error" if is_error else value}
    if name.startswith("ssl.") and str(value).endswith(".jks"):
        raise ConfigError(
            f"{name}={value!r} is a Java key store, which librdkafka cannot read: convert it to PEM "
            "or PKCS#12 with `keytool -importkeystore -deststoretype pkcs12`"
        )
    if isinstance(value, bool):
        value = str(value).lower()
    return {RENAMED.get(name, name): value}
