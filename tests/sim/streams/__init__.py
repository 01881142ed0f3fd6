"""The local engine on virtual time, over a model of the brokers."""
