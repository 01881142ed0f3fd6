"""The pure parts of `bench.secured`: options, lists, exchanges, and sums of processes."""

from pathlib import Path

import pytest
from confluent_kafka.admin import ResourcePatternType

from bench import load, report, secured, secured_load, servers
from bench.aims import AIMS
from ottla.security.exchanges import AuthenticationFailed, ScramExchange, ScramLogin
from ottla.security.scram import ScramMechanism, credential_of_password
from ottla.wire import headers, schema
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest

PORTS = secured.Ports(1, 2, 3, 4)
SHA_512 = ScramMechanism.SCRAM_SHA_512


def _server(password: str) -> ScramExchange:
    credential = credential_of_password(SHA_512, password, b"salt", 4096)
    return ScramExchange(SHA_512, lambda user: ScramLogin(user, credential), nonce="there")


def test_the_client_logs_in_to_a_server_of_scram() -> None:
    """The benchmark has its own client, which derives the key from the password only once."""
    server, messages = _server("secret"), secured_load.scram_messages("ann", "secret", "here")
    final = messages.send(server.step(next(messages)))
    assert server.step(final).startswith(b"v=")
    assert server.user == "ann"


def test_a_wrong_password_of_the_client_is_refused() -> None:
    """A failed login would count as a fast one."""
    server, messages = _server("other"), secured_load.scram_messages("ann", "secret", "here")
    final = messages.send(server.step(next(messages)))
    with pytest.raises(AuthenticationFailed):
        server.step(final)


def test_requests_of_a_login_have_the_message_of_plain() -> None:
    """A generator that knows only prepared requests can log in with them."""
    _, request = load.login_requests("PLAIN", load.plain_message("ann", "secret"))
    header = headers.decode_request_header(memoryview(request[4:]))
    body, _ = schema.decode(SaslAuthenticateRequest, 2, request[4:], header.body_position)
    assert bytes(body.auth_bytes) == b"\0ann\0secret"
    assert len(request) == 4 + int.from_bytes(request[:4], "big")


def test_the_rate_of_a_load_is_the_sum_of_its_processes() -> None:
    """Each process divides by its own time, because its last unit ends late."""
    done = [secured_load.Done(10, 4_000_000, 2.0), secured_load.Done(30, 2_000_000, 4.0)]
    assert secured_load.summary(done) == {
        "count": 40,
        "rate": 12.5,
        "gigabytes": 0.006,
        "mb_s": 2.5,
    }


def test_only_one_server_of_each_kind_has_an_authorizer(tmp_path: Path) -> None:
    """Both servers have the same options, which name every listener."""
    without, guarded = (
        secured.options_of(PORTS, tmp_path, has_authorizer=has_one) for has_one in (False, True)
    )
    assert guarded.keys() - without.keys() == {"authorizer.class.name", "super.users"}
    assert without["listeners"] == (
        "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2,RSA://127.0.0.1:3,SASL_PLAINTEXT://127.0.0.1:4"
    )
    assert "RSA:SSL" in without["listener.security.protocol.map"]
    assert servers.first_port(without) == PORTS.plaintext


def test_one_list_of_twenty_allows_the_topics_of_the_benchmark() -> None:
    """The other lists are of both kinds of patterns, and have to be passed over."""
    lists = secured.acls(20)
    assert len({(entry.name, entry.resource_pattern_type) for entry in lists}) == 20
    assert [entry.name for entry in lists if "bench-1".startswith(entry.name)] == ["bench-"]
    assert {entry.resource_pattern_type for entry in lists[1:]} == {
        ResourcePatternType.LITERAL,
        ResourcePatternType.PREFIXED,
    }


def test_subjects_are_measured_in_their_own_order() -> None:
    """All are measured by default; a name with a typing error is refused before servers start."""
    assert secured.chosen("") == list(secured.SUBJECTS)
    assert secured.chosen("logins,handshakes") == ["handshakes", "logins"]
    with pytest.raises(SystemExit, match="unknown subjects: login; known: tls_batches"):
        secured.chosen("login")


def test_the_least_cpu_time_of_the_turns_counts() -> None:
    """One turn beside other work of the machine would otherwise decide the ratio."""
    turns = [
        [secured.Cost(1, 8.0), secured.Cost(1, 30.0)],
        [secured.Cost(1, 9.0), secured.Cost(1, 8.2)],
    ]
    assert secured.least_cpu(turns) == [8.0, 8.2]


def test_the_aim_of_an_authorizer_is_five_percent() -> None:
    """It limits our own ratio, whatever the other server needs."""
    aim = AIMS["tiny produce, CPU with an authorizer to without"]
    assert aim.is_met(1.05, 1.0) and not aim.is_met(1.06, 2.0)


def test_the_report_names_the_command_that_measured() -> None:
    """Results of both commands have the same form."""
    about = {
        "command": "bench.secured", "date": "2026-11-28", "rounds": 2, "machine": "x86_64",
        "cores": 2, "linux": "6", "python": "3.11", "load": 0.1, "arguments": "--rounds 2",
    }  # fmt: skip
    assert report.head(about).endswith("Command: `python -m bench.secured --rounds 2`.")
    assert report.head(about | {"arguments": ""}).endswith("`python -m bench.secured`.")
