"""How a process that does a stage's work ends: a message for a person, a record for who started it, an exit
code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tasks.stage import failure
from vcppo.errors import ConfigurationError, VcppoError
from vcppo.processes import leave_failure

INTERRUPTED = 130
OURS = ("tasks", "training", "vcppo")


def exit_code(name: str, work: Callable[[], None]) -> int:
    """Do the work. Our errors become their message and exit code; what is not ours passes through, once it is
    recorded."""
    try:
        work()
    except VcppoError as error:
        leave_failure(failure(error))
        print(f"[{name}] {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"[{name}] interrupted; run again to go on", file=sys.stderr, flush=True)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in OURS:
            raise
        print(
            f"[{name}] {sys.executable}: has no package {error.name!r}; the stages need the environment of "
            "`make setup`: run `. .venv/bin/activate` first, then again",
            file=sys.stderr,
        )
        return ConfigurationError.exit_code
    except Exception as error:
        leave_failure(failure(error))
        raise
    return 0
