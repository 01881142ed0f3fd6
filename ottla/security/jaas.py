"""The login module of an option such as `sasl.jaas.config` (javax.security.auth.login). Pure."""

import re
from typing import NamedTuple

_MODULE = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*)", re.DOTALL)
_OPTION = re.compile(
    r"""\s*([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
)
EXAMPLE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'


class LoginModule(NamedTuple):
    """The class of a module, and its options."""

    name: str
    options: dict[str, str]


def parse_module(text: str) -> LoginModule:
    """Return the login module; raises ValueError, with an example, if the text is not one."""
    found = _MODULE.fullmatch(text)
    if found is None:
        raise ValueError(f"it is not a login module; write {EXAMPLE}")
    options: dict[str, str] = {}
    position, rest = 0, found[3]
    while match := _OPTION.match(rest, position):
        name, double, single, plain = match.groups()
        quoted = next((part for part in (double, single) if part is not None), None)
        options[name] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        position = match.end()
    if rest[position:].strip() != ";":
        raise ValueError(f"the login module does not end with `;`; write {EXAMPLE}")
    return LoginModule(found[1], options)
