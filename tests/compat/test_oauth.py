"""OAUTHBEARER on Ottla's listeners: librdkafka and Java log in with tokens."""

import contextlib
import functools
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

import ottla.client
from ottla.base.errors import ApiError
from ottla.testing import Cluster
from tests.compat import java
from tests.identity_provider import CLIENT, ISSUER, SECRET, IdentityProvider

pytestmark = [pytest.mark.compat, pytest.mark.slow]

KEY, FOREIGN = RSAKey.generate_key(2048, {"kid": "k"}), RSAKey.generate_key(2048, {"kid": "k"})
_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_OWN = "listener.name.sasl_plaintext.oauthbearer."


@contextlib.contextmanager
def cluster_with(**options: str) -> Iterator[str]:
    """Run a broker with OAUTHBEARER; yields its address for users."""
    rows = {
        # Some of the tokens have no signature.
        "allow.insecure.listeners": "true",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        **{_OWN + name.replace("_", "."): text for name, text in options.items()},
    }
    with Cluster(options=rows) as cluster:
        endpoint = cluster.node(1).broker.image.brokers[1].endpoint("SASL_PLAINTEXT")
        assert endpoint is not None
        yield f"{endpoint.host}:{endpoint.port}"


def settings(address: str, **more: Any) -> dict[str, Any]:
    """Return the options of librdkafka."""
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        **more,
    }


def wait_for_keys(options: dict[str, Any]) -> None:
    """Return when a login succeeds: a broker starts without the keys of its provider."""
    deadline = time.monotonic() + 20
    while True:
        try:
            with ottla.client.AdminClient(options) as admin:
                admin.list_topics()
                return
        except ApiError:
            if time.monotonic() > deadline:
                raise


def topics_of(options: dict[str, Any], seconds: float = 10.0) -> set[str]:
    """Return the topics that a client sees."""
    admin = AdminClient(options)
    admin.poll(0)
    return set(admin.list_topics(timeout=seconds).topics)


def signed(key: RSAKey, _config: str, **claims: object) -> tuple[str, float]:
    """Return a token of ann and its expiry, as librdkafka's callback does."""
    now = time.time()
    body = {"sub": "ann", "iat": int(now), "exp": int(now) + 60, "aud": "kafka", "iss": ISSUER}
    body |= claims
    return jwt.encode({"alg": "RS256", "kid": "k"}, body, key, algorithms=["RS256"]), now + 60


def test_librdkafka_logs_in_with_an_unsecured_token() -> None:
    """It issues the token itself; a broker that requires a scope refuses one without it."""
    unsecured = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
    claims = "sasl.oauthbearer.config"
    module = f'{_MODULE} unsecuredValidatorRequiredScope="kafka";'
    with cluster_with(sasl_jaas_config=module) as address:
        scoped = settings(address, **unsecured, **{claims: "principal=ann scope=kafka"})
        producer = confluent_kafka.Producer(scoped)
        producer.produce("t", b"v")
        assert producer.flush(20) == 0
        assert "t" in topics_of(scoped)
        plain = settings(address, **unsecured, **{claims: "principal=ann"})
        with pytest.raises(confluent_kafka.KafkaException):
            topics_of(plain, 2)


def test_librdkafka_logs_in_with_a_signed_token(tmp_path: Path) -> None:
    """A token that another key has signed is refused, as one for another service or issuer is."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(KeySet([KEY]).as_dict(private=False)))
    with cluster_with(
        sasl_oauthbearer_jwks_endpoint_url=keys.as_uri(),
        sasl_oauthbearer_expected_audience="kafka",
        sasl_oauthbearer_expected_issuer=ISSUER,
    ) as address:
        accepted = settings(address, oauth_cb=functools.partial(signed, KEY))
        assert topics_of(accepted) is not None
        assert use_all_clients(accepted) == 1
        for refused in (
            functools.partial(signed, FOREIGN),
            functools.partial(signed, KEY, aud="other"),
            functools.partial(signed, KEY, iss="other"),
        ):
            with pytest.raises(confluent_kafka.KafkaException):
                topics_of(settings(address, oauth_cb=refused), 2)


def use_all_clients(options: dict[str, Any]) -> int:
    """Create a topic, write a record, read and commit it, with the same options.

    Returns the committed offset.
    """
    with ottla.client.AdminClient(options) as admin:
        admin.create_topic("ours", partitions=1, replication_factor=1)
    with ottla.client.Producer(options) as producer:
        producer.send("ours", b"v").result(30)
    with ottla.client.Consumer(
        "ours", config=options, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        assert [record.value for record in consumer.poll(30)] == [b"v"]
        consumer.commit()
        return consumer.committed()["ours", 0].offset


def test_our_clients_issue_unsecured_tokens() -> None:
    """Producer, consumer and administration understand the same options."""
    with cluster_with(sasl_jaas_config=f"{_MODULE};") as address:
        unsecured = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
        options = settings(address, **unsecured, **{"sasl.oauthbearer.config": "principal=ann"})
        assert use_all_clients(options) == 1


def test_our_clients_fetch_tokens_of_a_provider() -> None:
    """The options are librdkafka's, or Java clients'; the broker fetches the keys."""
    with (
        IdentityProvider() as provider,
        cluster_with(
            sasl_oauthbearer_jwks_endpoint_url=provider.url,
            sasl_oauthbearer_expected_issuer=ISSUER,
        ) as address,
    ):
        endpoint = {"sasl.oauthbearer.token.endpoint.url": provider.url}
        own = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
        }
        wait_for_keys(settings(address, **endpoint, **own))
        assert use_all_clients(settings(address, **endpoint, **own)) == 1
        java_options = {
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.jaas.config": f'{_MODULE} clientId="{CLIENT}" clientSecret="{SECRET}";',
        }
        with ottla.client.AdminClient(settings(address, **endpoint, **java_options)) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["ours"]
        wrong = settings(address, **endpoint, **{**own, "sasl.oauthbearer.client.secret": "x"})
        with pytest.raises(ApiError, match="Unauthorized"):
            ottla.client.AdminClient(wrong).list_topics()


@pytest.mark.slow
@pytest.mark.needs("java")
def test_java_client_logs_in_with_an_unsecured_token(tmp_path: Path) -> None:
    """Its login module issues the token."""
    with cluster_with(sasl_jaas_config=f"{_MODULE};") as address:
        config = tmp_path / "client.properties"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f'sasl.jaas.config={_MODULE} unsecuredLoginStringClaim_sub="ann";\n'
        )
        command = java.command(
            java.client_class_path("4.3.0"),
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", address, "--command-config", str(config)),
            *("--create", "--topic", "java"),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "Created topic java." in done.stdout, done.stderr
