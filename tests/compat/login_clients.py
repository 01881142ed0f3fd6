"""Foreign clients that log in to a listener once: librdkafka, kafka-python, aiokafka, kcat, Java."""

import asyncio
import base64
import hashlib
import json
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from tests.compat import java

OK = "ok"
_PATIENCE_S = 20.0
# kafka-python repeats a login that was refused for this long.
_BOOTSTRAP_MS = 2000
# librdkafka's codes of refusals: authentication and TLS; and the code of a broker that
# disconnects.
_REFUSALS, _DOWN = (-169, -181), -187
_JAVA = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}


class Login(NamedTuple):
    """The options of one login; `certificate` is the file of the client, if it has one."""

    address: str
    protocol: str
    mechanism: str
    password: str
    authority: Path
    certificate: Path | None
    token: str
    expects_refusal: bool
    user: str = "ann"

    def librdkafka(self) -> dict[str, Any]:
        """Return the options of librdkafka, without a token."""
        options: dict[str, Any] = {
            "bootstrap.servers": self.address,
            "security.protocol": self.protocol,
            "ssl.ca.location": str(self.authority),
            "log_level": 0,
        }
        if self.certificate is not None:
            own = str(self.certificate)
            options |= {"ssl.certificate.location": own, "ssl.key.location": own}
        if self.mechanism:
            options["sasl.mechanism"] = self.mechanism
        if self.mechanism not in ("", "OAUTHBEARER"):
            options |= {"sasl.username": self.user, "sasl.password": self.password}
        return options

    def of_python(self) -> dict[str, Any]:
        """Return the arguments of kafka-python and aiokafka, without a token."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if self.certificate is not None:
            context.load_cert_chain(self.certificate)
        options: dict[str, Any] = {
            "bootstrap_servers": self.address,
            "security_protocol": self.protocol,
            "ssl_context": context,
        }
        if self.mechanism:
            options["sasl_mechanism"] = self.mechanism
        if self.mechanism not in ("", "OAUTHBEARER"):
            options["sasl_plain_username"] = self.user
            options["sasl_plain_password"] = self.password
        return options


def librdkafka(login: Login) -> str:
    """Log in with librdkafka; return OK or its first error."""
    errors: list[confluent_kafka.KafkaError] = []
    options = login.librdkafka() | {"error_cb": errors.append}
    if login.mechanism == "OAUTHBEARER":
        # The client believes that the token is valid.
        options["oauth_cb"] = lambda _config: (login.token, time.time() + 60)
    admin = AdminClient(options)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        admin.poll(0)
        codes = (*_REFUSALS, _DOWN) if login.expects_refusal else _REFUSALS
        refusals = [error for error in errors if error.code() in codes]
        if refusals:
            return str(refusals[0])
        try:
            admin.list_topics(timeout=0.5)
            return OK
        except confluent_kafka.KafkaException as error:
            if time.monotonic() > deadline:
                return str(error)


def kafka_python(login: Login) -> str:
    """Log in with kafka-python; return OK or its error."""

    class Tokens(KafkaPythonTokens):  # type: ignore[misc]
        def token(self) -> str:
            return login.token

    options = login.of_python()
    if login.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = Tokens()
    if login.expects_refusal:
        options["bootstrap_timeout_ms"] = _BOOTSTRAP_MS
    try:
        admin = kafka.KafkaAdminClient(**options)
        admin.list_topics()
        admin.close()
        return OK
    except KafkaPythonError as error:
        return repr(error)


def aiokafka_client(login: Login) -> str:
    """Log in with aiokafka; return OK or its error."""

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return login.token

    async def start() -> str:
        options = login.of_python()
        if login.mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = Tokens()
        producer = aiokafka.AIOKafkaProducer(**options)
        try:
            await producer.start()
            return OK
        except AiokafkaError as error:
            return repr(error)
        finally:
            await producer.stop()

    return asyncio.run(start())


def kcat(login: Login) -> str:
    """Log in with kcat; return OK or the line of its first error."""
    options = login.librdkafka()
    del options["log_level"]
    words = [f"-X{name}={text}" for name, text in options.items()]
    running = subprocess.Popen(
        ["kcat", "-L", "-m", str(int(_PATIENCE_S)), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    try:
        for line in running.stderr:
            if "ERROR" in line or "FAIL" in line:
                return line
        return OK if running.wait(_PATIENCE_S) == 0 else "no line on standard error"
    finally:
        running.kill()
        running.communicate()


def java_client(login: Login) -> str:
    """Log in with the Java client; return OK or the output of the tool."""
    folder = login.authority.parent
    options = {
        "security.protocol": login.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(login.authority),
    }
    if login.certificate is not None:
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(login.certificate)}
    java_options: tuple[str, ...] = ()
    if login.mechanism:
        module = f"{_JAVA}.{_MODULES[login.mechanism]} required"
        user = f'username="{login.user}" password="{login.password}"'
        options["sasl.mechanism"] = login.mechanism
        options["sasl.jaas.config"] = f"{module} {user};"
    if login.mechanism == "OAUTHBEARER":
        # One file in all cases: tools with the same options of Java share a JVM.
        token = folder / "token.jwt"
        token.write_text(login.token)
        java_options = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token.as_uri()}",)
        options["sasl.oauthbearer.token.endpoint.url"] = token.as_uri()
        options["sasl.jaas.config"] = f"{module};"
        options["sasl.login.callback.handler.class"] = (
            f"{_JAVA}.oauthbearer.OAuthBearerLoginCallbackHandler"
        )
    text = "".join(f"{name}={value}\n" for name, value in options.items())
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.properties"
    file.write_text(text)
    done = java.tool(
        java.client_class_path("4.3.0"),
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", login.address, "--command-config", str(file), "--list"),
        java_options=java_options,
    )
    output = done.output + done.errors
    return OK if done.code == 0 and "Exception" not in output else output


CLIENTS: dict[str, Callable[[Login], str]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka_client,
    "kcat": kcat,
    "java": java_client,
}


def unsigned(claims: dict[str, object]) -> str:
    """Return a token without a signature."""
    parts = (json.dumps({"alg": "none"}), json.dumps(claims))
    encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return ".".join((*encoded, ""))
