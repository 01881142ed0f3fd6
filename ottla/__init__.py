"""Ottla: an Apache-Kafka-compatible event-streaming platform in Python.

The layers; a package imports only from lower ones::

    layer 7  scripts   |   learn
    layer 6  tools   |   testing
    layer 5  console   |   streams
    layer 4  server                                           ||   operations
    layer 3  replication  |  controller  |  coordinators      ||   client
    layer 2  storage  |  cluster                              ||
    layer 1  wire  <  net  <  security
    layer 0  base  <  metrics

``|`` separates siblings that never import each other. ``||`` separates two sides: the broker side
(storage … server) and the client side (client, operations, streams, console) never import each
other; they share only bytes on the wire. Only layers 6 and 7 import both. The scripts are the
package `ottla_scripts`, a distribution of its own.
"""

__version__ = "0.1.0"
