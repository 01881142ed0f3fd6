"""Encryption and authentication of the blocking connections: TLS, and SASL with PLAIN and SCRAM.

`options` reads the options of Kafka's clients, `sasl` has the messages of the mechanisms, and
`authentication` exchanges them with a broker. librdkafka secures the connections of records itself.

Not done: GSSAPI and OAUTHBEARER; key stores in the formats JKS and PKCS12.
"""
