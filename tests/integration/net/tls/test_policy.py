"""Versions and cipher suites of TLS, by Java's names."""

import shutil
import subprocess

import pytest

from ottla.net.tls.files import Policy
from ottla.net.tls.policy import VERSIONS, policy_of, versions_of

_BOTH = tuple(VERSIONS)
_OLD = ("TLSv1.2",)
_SUITE = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
_OPENSSL_SUITE = "ECDHE-RSA-AES128-GCM-SHA256"
_NEW_SUITES = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]


@pytest.mark.parametrize(
    ("enabled", "protocol", "versions"),
    [
        ([], "TLS", _BOTH),
        (["TLSv1.3", "TLSv1.2"], "TLSv1.3", _BOTH),
        (["TLSv1.3"], "TLSv1.3", ("TLSv1.3",)),
        (["TLSv1.2"], "TLSv1.3", _OLD),
        ([], "TLSv1.2", _OLD),
        (list(_BOTH), "TLSv1.2", _OLD),
    ],
)
def test_versions_are_those_that_are_enabled(
    enabled: list[str], protocol: str, versions: tuple[str, ...]
) -> None:
    """ssl.protocol is the newest one."""
    assert versions_of(enabled, protocol) == versions


@pytest.mark.parametrize(
    ("enabled", "protocol", "sentence"),
    [
        (["TLSv1.1", "TLSv1.2"], "TLS", r"OpenSSL [\d.]+ does not offer TLSv1.1: use TLSv1.2"),
        (["tlsv1.3"], "TLS", "does not offer tlsv1.3"),
        ([], "SSLv3", "does not offer SSLv3"),
        (["TLSv1.3"], "TLSv1.2", "none of TLSv1.3 is used with ssl.protocol=TLSv1.2"),
    ],
)
def test_versions_that_openssl_does_not_offer_are_refused(
    enabled: list[str], protocol: str, sentence: str
) -> None:
    """The error names the version; a contradiction is one, too."""
    with pytest.raises(ValueError, match=sentence):
        versions_of(enabled, protocol)


def test_suites_decide_about_the_versions() -> None:
    """A version without a suite is not used: a weaker default would be used otherwise."""
    assert policy_of(_BOTH, []) == Policy()
    assert policy_of(_BOTH, ["TLS_EMPTY_RENEGOTIATION_INFO_SCSV"]) == Policy()
    assert policy_of(_BOTH, [_SUITE]) == Policy(_OLD, (_OPENSSL_SUITE,))
    assert policy_of(_BOTH, [_OPENSSL_SUITE]) == Policy(_OLD, (_OPENSSL_SUITE,))
    assert policy_of(_BOTH, _NEW_SUITES) == Policy(("TLSv1.3",))
    assert policy_of(_BOTH, [_SUITE, *_NEW_SUITES]) == Policy(_BOTH, (_OPENSSL_SUITE,))


@pytest.mark.parametrize(
    ("versions", "suites", "sentence"),
    [
        (_BOTH, ["TLS_NOT_THERE"], "has no suite TLS_NOT_THERE that authenticates and encrypts"),
        (_BOTH, ["TLS_RSA_WITH_NULL_SHA256"], "has no suite TLS_RSA_WITH_NULL_SHA256"),
        (_BOTH, ["TLS_DH_anon_WITH_AES_128_GCM_SHA256"], "has no suite TLS_DH_anon"),
        (_BOTH, ["ADH-AES128-SHA256"], "has no suite ADH-AES128-SHA256"),
        (_BOTH, _NEW_SUITES[:1], "only TLS_AES_256_GCM_SHA384 is named, and Python cannot choose"),
        (("TLSv1.3",), [_SUITE], "no suite is for TLSv1.3, the versions that are enabled"),
    ],
)
def test_suites_that_cannot_be_honoured_are_refused(
    versions: tuple[str, ...], suites: list[str], sentence: str
) -> None:
    """The error names the suite."""
    with pytest.raises(ValueError, match=sentence):
        policy_of(versions, suites)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_names_of_java_are_those_that_openssl_lists() -> None:
    """Every suite of Java's own provider has OpenSSL's name in `openssl ciphers -stdname`."""
    command = ["openssl", "ciphers", "-stdname", "ALL:!aNULL:!eNULL:!PSK:!SRP"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = [(line.split()[0], line.split()[2]) for line in listed.splitlines()]
    # Java's provider has neither ARIA nor CCM.
    of_java = [pair for pair in pairs if not {"ARIA", "CCM"} & set(pair[0].split("_"))]
    assert len(of_java) > 20
    for name, expected in of_java:
        if "_WITH_" in name:
            assert policy_of(_OLD, [name]).suites == (expected,)
