"""Requests of a worker to the brokers, and the tasks that wait for them to be opened."""
