"""The local engine: runs a topology in this process, record by record, without Spark.

A worker is a member of the application's consumer group. It runs the tasks that the group's leader
assigns to it, one for each partition of a sub-topology, and commits their outputs, changelogs and
offsets together.

Not done: worker processes (start several programs; `num_stream_threads` are threads of one), state
on disk, standby tasks and warm-up replicas, rack-aware assignment, static membership, the streams
group protocol (KIP-1071), topics that gain partitions, stores that are read without their
changelogs, `pause` and `resume`, restore listeners, metadata of other instances, `ottla streams
list` and the console's page, production exception handlers for records that the broker refuses
after they were sent. Changelogs of buffers (suppress, grace, outer joins) have their own format:
Kafka Streams in Java cannot continue with them. Read-only state stores (KIP-813) start empty.
"""
