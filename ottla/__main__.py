"""The script `ottla`, and `python -m ottla`: load the command, and run it."""

import signal

from ottla.base.loading import load_module


def main() -> None:
    """Run the command; Ctrl-C while it is loaded ends the process without a traceback."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = load_module("ottla.tools.main")
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command.main()


if __name__ == "__main__":
    main()
