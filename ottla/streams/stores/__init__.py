"""State stores: typed stores over one port, an ordered map of bytes.

`ordered.py` contains the port and its in-memory form; the other modules are Kafka's types of stores
over it.
"""
