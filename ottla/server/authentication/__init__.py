"""Identities of clients: exchanges of listeners with SASL, certificates of those with TLS.

A connection of such a listener begins at a gate, which lets through only the requests of the
exchange; once the client is known, the dispatcher handles its frames directly. A listener without
SASL and certificates has no gate. Follows Kafka's SaslServerAuthenticator.
"""
