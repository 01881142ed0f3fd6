"""The languages of the console."""
