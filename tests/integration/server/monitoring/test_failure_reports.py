"""Failed background tasks and damaged partitions are visible in `/healthz` and `/metrics`."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.server.node import Node
from tests.certificates import self_signed
from tests.integration.server.monitoring.test_metrics import SETTINGS, commit, get, metrics, yard
from tests.integration.server.test_node import Yard

__all__ = ["yard"]


async def health(node: Node) -> tuple[int, Any]:
    """Return the status and the content of `/healthz`."""
    status, body = await get(node, "/healthz")
    return status, json.loads(body)


async def test_failed_maintenance_task_is_restarted_and_reported(
    yard: Yard, monkeypatch: Any
) -> None:
    """The broker is degraded for a while, and then its upkeep runs again."""
    node = yard.make(settings=SETTINGS)
    failed, resumed = asyncio.Event(), asyncio.Event()

    async def maintain(*_: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise LookupError("a bug")
        resumed.set()
        await asyncio.Event().wait()

    # Brokers of other tests in this process, which run already, have their own upkeep.
    monkeypatch.setattr("ottla.server.node._maintain", maintain)
    monkeypatch.setattr("ottla.base.tasks.RESTART_SECONDS", 0.001)
    await node.start()
    async with asyncio.timeout(20):
        await resumed.wait()
    status, facts = await health(node)
    assert (status, facts["status"]) == (503, "degraded")
    assert facts["failing_tasks"] == {"maintenance": "LookupError: a bug"}
    assert facts["background_failures"] == {"maintenance": 1}
    value = await metrics(node)
    assert value("ottla_background_task_failures_total", task="maintenance") == 1


async def test_damaged_partition_is_reported_and_the_broker_stays_healthy(yard: Yard) -> None:
    """It is reported with the file and the position, and the other partitions are served."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    for topic in ("bad", "good"):
        await client.metadata(topic)
        assert (await client.produce(topic, b"a")).error_code == 0
        node.broker.replicas.get(topic, 0).log.rolling.roll()
        assert (await client.produce(topic, b"b")).error_code == 0
    await node.stop()
    path = Path(yard.folder) / "bad-0" / f"{0:020}.log"
    path.write_bytes(bytes(path.stat().st_size))
    node = await yard.start(settings=SETTINGS)
    status, facts = await health(node)
    value = await metrics(node)
    assert (status, facts["status"]) == (200, "ok")
    assert facts["damaged_partitions"] == {"bad-0": f"{path} is damaged at byte 0."}
    assert value("ottla_damaged_partitions") == 1
    client = await yard.client(node)
    for topic in ("bad", "good"):
        assert (await client.produce(topic, b"c")).error_code == 0


@pytest.mark.parametrize("position", [0, 10, 16, 60])
async def test_damage_of_an_internal_topic_loses_only_the_damaged_records(
    yard: Yard, position: int
) -> None:
    """Offsets that were committed before and after the damage are loaded; it is reported."""
    settings = SETTINGS | {"offsets.topic.num.partitions": "1"}
    node = await yard.start(settings=settings)
    sizes = []
    for topic in ("a", "b", "c"):
        await commit(node, topic)
        log = node.broker.replicas.get("__consumer_offsets", 0).log
        sizes.append(log.size_bytes)
    log.rolling.roll()
    await commit(node, "d")
    await node.stop()
    path = Path(yard.folder) / "__consumer_offsets-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    # The batch of the second commit: its base offset, length, magic byte or number of records.
    data[sizes[0] + position] ^= 0x40
    path.write_bytes(data)
    node = await yard.start(settings=settings)
    offsets = await loaded(node)
    assert set(offsets) >= {("a", 0), ("c", 0), ("d", 0)}
    status, facts = await health(node)
    assert (status, facts["status"]) == (200, "ok")
    if ("b", 0) not in offsets:
        assert facts["skipped_records"] == {"__consumer_offsets": 1}
        damaged = f"{path} is damaged at byte {sizes[0]}."
        assert facts["damaged_partitions"] == {"__consumer_offsets-0": damaged}


async def loaded(node: Node) -> Any:
    """Return the committed offsets of the group, as soon as the coordinator has loaded them."""
    async with asyncio.timeout(20):
        while "g" not in (groups := dict(node.broker.groups.committed_offsets())):
            await asyncio.sleep(0)
    return groups["g"]


async def test_certificate_that_cannot_be_renewed_is_counted(yard: Yard, tmp_path: Path) -> None:
    """The former one stays; the file must be corrected before that expires."""
    chain = self_signed(tmp_path)
    secured = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(chain)}
    node = await yard.start(settings={**SETTINGS, **secured})
    value = await metrics(node)
    assert value("ottla_certificate_failures_total", listener="SSL") == 0
    expiry = value("ottla_certificate_expiry_timestamp_seconds", listener="SSL")
    assert abs(expiry - time.time() - 24 * 60 * 60) < 600
    chain.write_text("damaged")
    assert node.sources.certificates is not None
    await node.sources.certificates.check()
    value = await metrics(node)
    assert value("ottla_certificate_failures_total", listener="SSL") == 1
    assert value("ottla_certificate_renewals_total", listener="SSL") == 0
