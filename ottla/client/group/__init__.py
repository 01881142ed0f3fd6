"""Consumer groups with assignors that librdkafka does not have: the eager StickyAssignor, and an
application's own.

`GroupConsumer` joins the group itself, with the classic protocol, and lets librdkafka read the
assigned partitions.
"""
