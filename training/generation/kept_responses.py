"""Responses of a shard that is still being drawn, on disk as they come: a kill loses none that was finished.

JSON lines beside the shard: how they were drawn, then a response a line. The file goes once the shard is
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.generation.engine import EngineSettings
from training.generation.samples import Draw, Request, Response
from training.generation.shard_files import drawn_how

SUFFIX = ".responses.jsonl"


class KeptResponses:
    """What an earlier attempt at a shard left, and where this one adds.

    Responses that were drawn otherwise (another engine, server, seed or sampling) do not count and are
    replaced. Where the folder cannot be reached, on a worker without the shared storage, nothing is kept.
    """

    def __init__(self, shard: Path, settings: EngineSettings, draw: Draw) -> None:
        self.path = kept_path(shard)
        self._header = json.dumps(_how(settings, draw), sort_keys=True)
        self._known: dict[str, Mapping[str, Any]] = {}
        self._is_on = self.path.parent.is_dir()
        if not self._is_on:
            return
        lines = _whole_lines(self.path)
        if lines[:1] == [self._header]:
            for line in lines[1:]:
                values = json.loads(line)
                self._known[values.pop("key")] = values
        # without what was torn, so that the next line does not continue it
        text = "".join(f"{line}\n" for line in (lines if self._known else [self._header]))
        temporary = self.path.with_suffix(".partial")
        temporary.write_text(text)
        temporary.replace(self.path)

    def get(self, request: Request) -> Response | None:
        """The response to this request, if it was finished."""
        values = self._known.get(request.key)
        return None if values is None else _response(request, values)

    def add(self, responses: Sequence[Response]) -> None:
        """Keep these too, before anything else is drawn."""
        if not self._is_on:
            return
        with self.path.open("a") as file:
            file.writelines(f"{json.dumps(_values(response))}\n" for response in responses)


def kept_path(shard: Path) -> Path:
    """Where the responses of an unfinished shard lie."""
    return shard.with_name(shard.stem + SUFFIX)


def _how(settings: EngineSettings, draw: Draw) -> dict[str, Any]:
    how, server = drawn_how(settings, draw), settings.server
    if server is None:
        return how
    del how["batch_size"]  # how many are asked for at once changes no response
    return how | {"base_url": server.base_url, "model": server.model}


def _whole_lines(path: Path) -> list[str]:
    """Lines that end; the last one may have been torn by a kill."""
    text = path.read_text() if path.is_file() else ""
    return text.split("\n")[:-1]


def _values(response: Response) -> dict[str, Any]:
    return {
        "key": response.request.key,
        "text": response.text,
        "finish_reason": response.finish_reason,
        "num_tokens": response.num_tokens,
        "engine_version": response.engine_version,
        "prompt_ids": response.prompt_ids,
        "response_ids": response.response_ids,
        "log_probs": response.log_probs,
    }


def _response(request: Request, values: Mapping[str, Any]) -> Response:
    lists = {name: tuple(values[name]) for name in ("prompt_ids", "response_ids", "log_probs")}
    return Response(request=request, **{**values, **lists})
