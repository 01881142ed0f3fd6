"""The other brokers of the cluster: their addresses, requests to them, requests from them."""
