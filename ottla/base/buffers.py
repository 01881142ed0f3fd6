"""The bytes-like types that carry records and frames; apart from `files`, which needs asyncio.

The command line starts in under 150 ms because nothing on its way (client, wire) imports asyncio.
"""

Buffer = bytes | bytearray | memoryview
