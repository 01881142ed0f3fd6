"""Text from outside: regular expressions that cannot stop the event loop."""
