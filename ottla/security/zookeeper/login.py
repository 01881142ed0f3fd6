"""The user as whom this process connects to a ZooKeeper, from the settings of Java programs.

Apache Kafka's programs read them from system properties, which KAFKA_OPTS contains:
`-Djava.security.auth.login.config=FILE` names a JAAS file, whose section `Client` (or
`-Dzookeeper.sasl.clientconfig=SECTION`) has user and password. `-Dzookeeper.sasl.client=false`
switches the login off. Follows org.apache.kafka.common.security.JaasUtils.

Not done:
    Kerberos: a section with Krb5LoginModule is an error.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem

JAVA_OPTIONS = "KAFKA_OPTS"
LOGIN_FILE = "java.security.auth.login.config"
_SWITCH = "zookeeper.sasl.client"
_SECTION = "zookeeper.sasl.clientconfig"
_DEFAULT_SECTION = "Client"
_EXAMPLE = (
    'Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="…" '
    'password="…"; };'
)
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|([{};=])|([^\s{};="]+)', re.DOTALL)

Read = Callable[[str], bytes]
# True for a sign of the format, and the text.
_Token = tuple[bool, str]
_END, _STOP = (True, "}"), (True, ";")


class Login(NamedTuple):
    """A user and its password; `source` names the section and the file for errors."""

    username: str
    password: str
    source: str


class LoginSettings(NamedTuple):
    """The values of the system properties of a login; None for those that are not set."""

    file: str | None
    switch: str | None
    section: str | None

    def __str__(self) -> str:
        """Return the settings as Apache Kafka's errors name them."""
        switch = self.switch or "default:true"
        section = self.section or f"default:{_DEFAULT_SECTION}"
        return f"[{LOGIN_FILE}={self.file}, {_SWITCH}={switch}, {_SECTION}={section}]"

    @property
    def is_enabled(self) -> bool:
        """False if the login is switched off."""
        return self.switch is None or self.switch.lower() == "true"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "LoginSettings":
        """Return the settings in the Java options of an environment."""
        properties = system_properties(environment.get(JAVA_OPTIONS, ""))
        return cls(*map(properties.get, (LOGIN_FILE, _SWITCH, _SECTION)))

    def options(self, read: Read) -> dict[str, str] | None:
        """Return the options of the section; None if there is no file, or no such section.

        Raises ConfigError if the file cannot be read.
        """
        if self.file is None:
            return None
        try:
            text = read(self.file).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the JAAS file {self.file!r} cannot be read "
                f"({getattr(error, 'strerror', None) or error}): correct {LOGIN_FILE} in "
                f"{JAVA_OPTIONS}"
            ) from error
        return _sections(text, self.file).get(self.section or _DEFAULT_SECTION)

    def login(self, read: Read) -> Login | None:
        """Return the user; None without a section, or if it is switched off.

        Raises ConfigError for a file that cannot be read, or a section without a user.
        """
        options = self.options(read) if self.is_enabled else None
        if options is None:
            return None
        source = f"section {self.section or _DEFAULT_SECTION} of {self.file}"
        missing = [name for name in ("username", "password") if name not in options]
        if missing:
            raise ConfigError(f"{source} has no {' and no '.join(missing)}: write {_EXAMPLE}")
        return Login(options["username"], options["password"], source)


def login_of_environment() -> Login | None:
    """Return the user that the environment of this process names; ConfigError if it is wrong."""
    return LoginSettings.of(os.environ).login(RealFileSystem().read)


def system_properties(java_options: str) -> dict[str, str]:
    """Return the system properties in options of Java, as in `-Dname=value`."""
    try:
        words = shlex.split(java_options)
    except ValueError as error:
        raise ConfigError(f"{JAVA_OPTIONS} cannot be read: {error}") from error
    pairs = (word[2:].partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


def _sections(text: str, path: str) -> dict[str, dict[str, str]]:
    """Return the options of each section's first login module."""
    # Signs are not the values that look like them.
    tokens = [
        (found.group(2) is not None, found.group(2) or found.group(3) or _unescape(found.group(1)))
        for found in _TOKEN.finditer(text)
        if found.lastindex is not None
    ]
    sections: dict[str, dict[str, str]] = {}
    while tokens:
        (_, name), *rest = tokens
        end = rest.index(_END) if _END in rest else 0
        if rest[:1] != [(True, "{")] or rest[end + 1 : end + 2] != [_STOP]:
            raise ConfigError(f"the JAAS file {path!r} is malformed at {name!r}: write {_EXAMPLE}")
        sections.setdefault(name, _options(rest[1:end]))
        tokens = rest[end + 2 :]
    return sections


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _options(tokens: Sequence[_Token]) -> dict[str, str]:
    """Return the options of a login module: what follows its class and its flag."""
    end = tokens.index(_STOP) if _STOP in tokens else len(tokens)
    options = tokens[2:end]
    return {
        options[at - 1][1]: options[at + 1][1]
        for at, token in enumerate(options[:-1])
        if at and token == (True, "=")
    }
