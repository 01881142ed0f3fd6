"""The arrangement of drawings, for streams and the console."""
