"""The process that runs Math-Verify: `python -m vcppo.grading.worker ADDRESS_SPACE_BYTES`.

Two processes. The outer one is started fresh (never forked from a trainer that holds threads, torch or Ray),
imports Math-Verify once, does no grading and only forks: one child that grades, and a new one whenever that
dies. So a killed grader is replaced in milliseconds instead of after another import of a second. The outer
process has a single thread, hence its forks are safe.

Protocol, JSON lines: the child announces `{"ready": PID}`; then for each request on stdin
`{"id", "answer", "gold"}` it writes `{"id", "same": bool}` or `{"id", "error", "kind": "gold" | "grader"}`.
A reply is one write below PIPE_BUF: a kill leaves no half line. The child ends when stdin closes, and the
outer process with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from typing import Any

_CPU_SECONDS_PER_REQUEST = 30  # the kernel ends a hanging child even if the parent was killed before it could
_EOF_EXIT = 0
_WARM_UP = (  # one of each kind, so that no answer pays for sympy's lazy imports and caches
    (r"\frac{2}{4}", "0.5"),
    (r"2\le x<5", "[2,5)"),
    (r"x<2, x>3", r"(-\infty,2)\cup(3,\infty)"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\\frac{4}{2}\end{pmatrix}"),
    (r"\sin^2 x+\cos^2 x", "1"),
    (r"\sqrt{2+\sqrt{3}}-\frac{\sqrt6+\sqrt2}{2}", "0"),
    (r"2y=4x+2", "y=2x+1"),
    (r"5, 3", "3, 5"),
)
_MAX_ERROR = 300


def grade_request(request: dict[str, Any]) -> dict[str, Any]:
    """Reply to one request; every failure becomes an error reply."""
    from vcppo.errors import DataError
    from vcppo.grading import symbolic

    try:
        if request.get("answer") is None:
            return {"id": request["id"], "same": symbolic.read(request["gold"]) is not None}
        return {"id": request["id"], "same": symbolic.equivalent(request["answer"], request["gold"])}
    except DataError as error:
        return {"id": request["id"], "error": str(error)[:_MAX_ERROR], "kind": "gold"}
    except MemoryError:
        return {"id": request["id"], "error": "out of memory (address-space limit)", "kind": "grader"}
    except Exception as error:  # sympy raises anything on odd input; the pool must hear of it as no grade
        return {
            "id": request["id"],
            "error": f"{type(error).__name__}: {error}"[:_MAX_ERROR],
            "kind": "grader",
        }


def _serve() -> None:
    """Grade requests from stdin until it closes."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the outer process
    while select.select([0], [], [], 0)[0] and os.read(0, 65_536):
        pass  # the owner waits for us: this is for a child that was killed before it read it
    _reply({"ready": os.getpid()})
    for line in iter(_read_line, b""):
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + _CPU_SECONDS_PER_REQUEST
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        _reply(grade_request(json.loads(line)))


def _read_line() -> bytes:
    """The next request, read to its newline and no further (the rest belongs to whoever comes after us)."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 65_536)
        if not piece:
            return b""
        line += piece
    return bytes(line)


def _reply(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> int:
    """Warm up, then keep one grading child alive until stdin closes."""
    address_space = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(2_000)
    for answer, gold in _WARM_UP:
        reply = grade_request({"id": 0, "answer": answer, "gold": gold})
        if reply.get("same") is not True:
            sys.stderr.write(
                f"grading worker: Math-Verify does not work here: {answer} = {gold} gives {reply}\n"
            )
            return 1
    while True:
        child = os.fork()
        if child == 0:
            _serve()
            os._exit(_EOF_EXIT)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _EOF_EXIT:
            return 0


if __name__ == "__main__":
    sys.exit(main())
