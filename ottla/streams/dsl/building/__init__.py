"""What a call of the DSL adds to the plan, with Kafka's names and in Kafka's order.

`dsl.py` holds the types that users see; these functions know streams and tables as flows: where they
stand in the graph and with which serdes.
"""
