"""Requests of a worker to the brokers that its tasks do not wait for, and the tasks to be opened."""
