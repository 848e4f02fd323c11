"""A server on loopback that answers for one dataset repository as the Hugging Face hub does."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class HubServer:
    """files: text of each file of `repository` at `commit`. gated: only `token` may read it."""

    def __init__(self, repository: str, commit: str, files: dict[str, str], token: str | None = None) -> None:
        self.commit, self.token = commit, token
        self.files = {name: text.encode() for name, text in files.items()}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(self.headers.get("content-length"))

            do_HEAD = do_POST = do_GET

            def answer(self, length: str | None) -> None:
                body = self.rfile.read(int(length or 0))
                path = unquote(urlsplit(self.path).path).strip("/")
                place = path.removeprefix("api/").removeprefix(f"datasets/{repository}").strip("/").split("/")
                if f"datasets/{repository}" not in path:
                    return self.refuse(404, "RepoNotFound", "Repository not found")
                if outer.token and self.headers.get("authorization") != f"Bearer {outer.token}":
                    status = 403 if self.headers.get("authorization") else 401
                    return self.refuse(status, "GatedRepo", "Access to this dataset is restricted.")
                what, revision, *rest = [*place, "", ""]
                if revision != outer.commit:
                    return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
                name = "/".join(part for part in rest if part)
                if what == "resolve" and name not in outer.files:
                    return self.refuse(404, "EntryNotFound", "Entry not found")
                if what == "resolve":
                    return self.send(200, outer.files[name], ETag=f'"{sha(outer.files[name])}"')
                return self.send(200, json.dumps(outer.listing(what, name, body)).encode())

            def refuse(self, status: int, code: str, message: str) -> None:
                self.send(status, message.encode(), **{"X-Error-Code": code, "X-Error-Message": message})

            def send(self, status: int, data: bytes, **headers: str) -> None:
                self.send_response(status)
                for key, value in {"X-Repo-Commit": outer.commit, **headers}.items():
                    self.send_header(key, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def listing(self, what: str, folder: str, body: bytes) -> Any:
        """What the interface says of the repository: itself, the files of a folder, or those asked for."""
        if what == "revision":
            return {"id": "", "sha": self.commit, "siblings": [{"rfilename": name} for name in self.files]}
        names = list(self.files)
        if what == "paths-info":
            names = [name for name in names if name in json.loads(body)["paths"]]
        entries = [
            {"type": "file", "path": name, "size": len(self.files[name]), "oid": sha(self.files[name])}
            for name in names
            if name.startswith(folder)
        ]
        folders = {name.rsplit("/", 1)[0] for name in names if "/" in name}
        return entries + [{"type": "directory", "path": name, "oid": "0"} for name in sorted(folders)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def sha(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
