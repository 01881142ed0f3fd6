"""`python -m ottla`: the command `ottla`."""

from ottla.tools.main import main

if __name__ == "__main__":
    main()
