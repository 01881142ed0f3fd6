"""Mock credentials, which clients see that name a user who does not exist. Pure.

A client that names a user of SCRAM receives the user's salt and iterations before it proves that it
knows the password (RFC 5802). For an unknown user they are derived from a secret of the cluster: so
they are the same on every broker and after every restart, like a known user's. They have a
form that users have, and each form as often as users have it.
"""

import bisect
import hashlib
import itertools
import re
from collections import Counter
from typing import NamedTuple

from ottla.security.scram import ITERATIONS_MIN, SALT_BYTES, ScramCredential, ScramMechanism

_DRAW_BYTES = 8
_DRAWS = 1 << 8 * _DRAW_BYTES
# The Java client's salts are random numbers of so many bits, as text with this base.
_JAVA_BITS, _JAVA_BASE = 130, 36
_JAVA_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_JAVA_SALT = re.compile(rb"[1-9a-z][0-9a-z]{20,25}")
_JAVA_BYTES = _JAVA_BITS // 8 + 1
_OF_JAVA = -1


class Form(NamedTuple):
    """The visible form of a credential; the length is -1 for salts of the Java client."""

    iterations: int
    salt_bytes: int


class MockCredentials:
    """The mock credentials of one mechanism, in the forms of the users' credentials."""

    def __init__(self, secret: bytes, mechanism: ScramMechanism) -> None:
        self._mechanism = mechanism
        self._key = secret + mechanism.mechanism_name.encode() + b"\0"
        self._counts: Counter[Form] = Counter()
        # The forms, and for each the number of users with it or an earlier one.
        self._forms: list[Form] = []
        self._ends: list[int] = []

    def add(self, credential: ScramCredential) -> None:
        """Count the form of a user's credential."""
        self._counts[_form_of(credential)] += 1
        self._forms.clear()

    def remove(self, credential: ScramCredential) -> None:
        """Forget a credential that was added."""
        form = _form_of(credential)
        self._counts[form] -= 1
        if not self._counts[form]:
            del self._counts[form]
        self._forms.clear()

    def credential(self, user: str) -> ScramCredential:
        """Return the credential of a user who does not exist; no password matches it.

        It changes only if the shares of the forms change, and then for as few users as possible.
        """
        if not self._forms:
            # Without users nothing is to be concealed.
            counts = sorted(self._counts.items()) or [(Form(ITERATIONS_MIN, SALT_BYTES), 1)]
            self._forms = [form for form, _ in counts]
            self._ends = list(itertools.accumulate(count for _, count in counts))
        draw = int.from_bytes(self._stream("form", user, _DRAW_BYTES))
        share = draw * self._ends[-1] // _DRAWS
        form = self._forms[bisect.bisect_right(self._ends, share)]
        return mock(self._mechanism, self._salt(form, user), form.iterations)

    def _salt(self, form: Form, user: str) -> bytes:
        # A known user has another salt with other iterations, too.
        purpose = f"salt {form.iterations} {form.salt_bytes}"
        if form.salt_bytes != _OF_JAVA:
            return self._stream(purpose, user, form.salt_bytes)
        number = int.from_bytes(self._stream(purpose, user, _JAVA_BYTES)) >> -_JAVA_BITS % 8
        digits = []
        while number:
            number, digit = divmod(number, _JAVA_BASE)
            digits.append(_JAVA_DIGITS[digit])
        return "".join(reversed(digits)).encode()

    def _stream(self, purpose: str, user: str, size_bytes: int) -> bytes:
        seed = self._key + purpose.encode() + b"\0" + user.encode()
        return hashlib.shake_256(seed).digest(size_bytes)


def mock(mechanism: ScramMechanism, salt: bytes, iterations: int) -> ScramCredential:
    """Return a credential that no password matches."""
    nothing = bytes(hashlib.new(mechanism.digest).digest_size)
    return ScramCredential(salt, nothing, nothing, iterations)


def _form_of(credential: ScramCredential) -> Form:
    salt = credential.salt
    is_of_java = _JAVA_SALT.fullmatch(salt) and int(salt, _JAVA_BASE) >> _JAVA_BITS == 0
    return Form(credential.iterations, _OF_JAVA if is_of_java else len(salt))
