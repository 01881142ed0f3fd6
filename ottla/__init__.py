"""Ottla: an Apache-Kafka-compatible event-streaming platform in Python.

The floor plan; a package imports only from lower floors::

    floor 5  hands       tools        testing
    floor 4  processes   server   |   console   |   streams
    floor 3  engines     replication  |  controller  |  coordinators      ||   client
    floor 2  state       storage  |  cluster                              ||
    floor 1  bytes       wire  <  net  <  security
    floor 0  ground      base  <  metrics

``|`` are siblings that never import each other. ``||`` are two worlds: the broker world
(storage … server) and the client world (client, streams, console) never import each other; they
meet in bytes. Only ``tools`` and ``testing`` see both.
"""

__version__ = "0.1.0"
