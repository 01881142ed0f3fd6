"""Checkers: what a history of requests and answers says about the promises that were made."""
