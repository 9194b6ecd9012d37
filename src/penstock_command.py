"""The command `penstock`, from its first moment on.

Importing Penstock takes a second. Who presses Ctrl-C meanwhile wants out, not a stack trace from the middle of an
import, or an abort from that of a compiled module. So the signal is taken care of before anything else is imported,
which no module inside the package can do.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

#: What shells call the end by Ctrl-C.
INTERRUPTED = 130


def leave(number: int, frame: object) -> NoReturn:
    """End this process at once: wherever that is, the next start goes on from the last epoch that is committed."""
    os.write(2, b"stopped\n")
    os._exit(INTERRUPTED)


def main() -> None:
    """The entry point of the installed script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if whoever started us has it ignored
        signal.signal(signal.SIGINT, leave)
    from penstock.portal.cli import main

    main()


if __name__ == "__main__":
    main()
