"""The script `ottla`, and `python -m ottla`: load the command, and run it."""

import signal
import sys

from ottla.base.loading import load_module

_ON_WINDOWS = (
    "ottla: brokers and commands need Linux or macOS: on Windows, run `wsl --install` and then "
    "`pip install ottla` and `ottla up` in WSL 2, or build deploy/Containerfile with Docker and run "
    "`docker run --rm -p 127.0.0.1:9092:9092 ottla`"
)


def main() -> None:
    """Run the command; Ctrl-C while it is loaded ends the process without a traceback."""
    if sys.platform == "win32":
        # One sentence, before anything that Windows lacks is imported.
        sys.stderr.write(f"{_ON_WINDOWS}\n")
        sys.exit(1)
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = load_module("ottla.tools.main")
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command.main()


if __name__ == "__main__":
    main()
