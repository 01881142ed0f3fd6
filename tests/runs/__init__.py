"""How the tests are run: order, durations, repetitions, and the programs that some tests need."""
