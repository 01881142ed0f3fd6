"""Ottla responds as Apache Kafka did when it was recorded, except where the transcript has a
reason.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ottla.server.transport.apis import ROWS
from ottla.wire.api_keys import APIS
from tests.compat.recorded import ours, transcript
from tests.compat.recorded.player import Played
from tests.compat.recorded.record import FOLDER

pytestmark = pytest.mark.slow

# These transcripts wait for timeouts: they are played, each to a broker of its own, while the
# others run, and are judged last.
WAITING = (
    "consumer_groups_limits",
    "consumer_groups_interval",
    "telemetry",
    "groups_join",
    "offset_for_leader_epoch",
)
SUBJECTS = sorted(
    (path.stem for path in FOLDER.glob("*.txt")), key=lambda name: (name in WAITING, name)
)


@pytest.fixture(scope="module", name="played")
def _played(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Played]]]:
    """The running plays of the transcripts that wait, if their tests are selected."""
    selected = {item.callspec.params.get("subject") for item in request.session.items
                if isinstance(item, pytest.Function) and hasattr(item, "callspec")}  # fmt: skip
    with ThreadPoolExecutor(len(WAITING)) as executor:
        yield {
            subject: executor.submit(ours.play_to_ottla, _script(subject))
            for subject in WAITING
            if subject in selected
        }


def _script(subject: str) -> transcript.Transcript:
    return transcript.read(FOLDER / f"{subject}.txt")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_responses_are_those_of_kafka(subject: str, played: dict[str, Future[Played]]) -> None:
    """Every exchange of the transcript has Kafka's response when it is replayed."""
    script = _script(subject)
    responses = played[subject].result() if subject in played else ours.play_to_ottla(script)
    actual = ours.differences(script, responses)
    assert not actual, "\n".join(actual)


def test_every_api_is_recorded_in_every_version() -> None:
    """Every supported version of every API was compared with Apache Kafka at least once.

    Requests that only brokers may send are excluded: without their controller, a broker of Apache
    Kafka rejects all of them because of stale epochs.
    """
    recorded = {
        (exchange.api.name, version)
        for subject in SUBJECTS
        for exchange in transcript.read(FOLDER / f"{subject}.txt").exchanges()
        if exchange.api is not None
        for version in exchange.modern
    }
    served = {
        (APIS[int(row.handler.API)].name, version)
        for row in ROWS
        if not row.needs_proof or row.proof_since or row.is_for_administrators
        for version in range(row.handler.MIN_VERSION, row.handler.MAX_VERSION + 1)
    }
    missing = sorted(served - recorded)
    assert not missing, f"record conversations in these versions: {missing}"


def test_many_exchanges_are_recorded() -> None:
    """There are many different requests, each in one or more versions."""
    scripts = [transcript.read(FOLDER / f"{subject}.txt") for subject in SUBJECTS]
    exchanges = [exchange for script in scripts for exchange in script.exchanges()]
    assert len(exchanges) >= 2000
    assert sum(len(exchange.modern) for exchange in exchanges) >= 5000


def test_every_deviation_has_a_reason() -> None:
    """Every line with a response of Ottla's own has a reason."""
    for subject in SUBJECTS:
        for exchange in transcript.read(FOLDER / f"{subject}.txt").exchanges():
            assert not exchange.ours or exchange.reason, f"{subject}:{exchange.line}"
