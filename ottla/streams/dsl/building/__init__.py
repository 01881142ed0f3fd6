"""The steps that the methods of the DSL add to the plan, with Kafka's names and in Kafka's order.

The modules in `dsl/` have the types for users; these functions handle streams and tables as flows:
a position in the graph, with serdes.
"""
