"""Encryption and authentication of the blocking connections: TLS, and SASL with PLAIN, SCRAM and
OAUTHBEARER.

`options` reads the options of Kafka's clients, `sasl` has the messages of the mechanisms, and
`authentication` exchanges them with a broker. librdkafka secures the connections of records itself.

Not done: GSSAPI; assertions of JWT for OAUTHBEARER (KIP-1139); key stores in the formats JKS and
PKCS12.
"""
