"""What the DSL's operators do, each as a frozen description that makes its processor.

An operator is a processor supplier with fields: a plan can be printed and compiled by looking at them.
Semantics are those of Kafka Streams' own processors, record by record; tests/streams holds both together.
"""
