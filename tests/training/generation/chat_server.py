"""A real server of chat completions on loopback that answers what the test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any] | Callable[[dict[str, Any]], tuple[int, Any]]


def completion(text: str | None, reason: str | None = "stop", **more: Any) -> tuple[int, Any]:
    """A reply as OpenAI documents it."""
    return 200, {
        "model": "served",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}],
        "usage": {"completion_tokens": 7},
        **more,
    }


class Server:
    """A real chat-completions server. `script`: its answers, one a request; the last one is repeated."""

    def __init__(self) -> None:
        self.script: list[Answer] = [completion("ok")]
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.under_way = self.most_under_way = 0
        self.seconds = 0.0
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer.lock:
                    outer.seen.append({"path": self.path, **body})
                    outer.keys.append(self.headers.get("authorization"))
                    outer.under_way += 1
                    outer.most_under_way = max(outer.most_under_way, outer.under_way)
                    answer = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                time.sleep(outer.seconds)
                status, payload = answer(body) if callable(answer) else answer
                with outer.lock:
                    outer.under_way -= 1
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass  # a client that has stopped waiting

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
