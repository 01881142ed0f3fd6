"""Logins to a ZooKeeper, and to a tree that brokers serve in its protocol: SASL DIGEST-MD5."""
