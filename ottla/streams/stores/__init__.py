"""State stores: typed stores over one port, an ordered map of bytes.

`ordered.py` is the port and its in-memory form; the rest are Kafka's kinds of stores over it.
"""
