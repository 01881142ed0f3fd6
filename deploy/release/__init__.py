"""The program that builds and checks a release."""
