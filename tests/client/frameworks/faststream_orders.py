"""A program of FastStream: it answers each order of a topic with a record of another one.

Runs in an environment of its own: `python faststream_orders.py <bootstrap> <count>`. It prints the
number of different results.
"""

import asyncio
import sys

from faststream import FastStream
from faststream.kafka import KafkaBroker

BOOTSTRAP, COUNT = sys.argv[1], int(sys.argv[2])
broker = KafkaBroker(BOOTSTRAP)
app = FastStream(broker)
results: set[str] = set()
is_complete = asyncio.Event()


@broker.subscriber("orders", group_id="shop", auto_offset_reset="earliest")
@broker.publisher("parcels")
async def pack(order: str) -> str:
    """Return the parcel of an order."""
    return f"parcel of {order}"


@broker.subscriber("parcels", group_id="post", auto_offset_reset="earliest")
async def deliver(parcel: str) -> None:
    """Count a parcel."""
    results.add(parcel)
    if len(results) == COUNT:
        is_complete.set()


async def main() -> None:
    """Publish the orders, and wait for all parcels."""
    await broker.start()
    for number in range(COUNT):
        await broker.publish(f"order {number}", topic="orders", key=str(number).encode())
    async with asyncio.timeout(60):
        await is_complete.wait()
    await broker.stop()
    print(len(results))


asyncio.run(main())
