"""Toy stage: numbers from a seed, beside a source from outside."""

from __future__ import annotations

import json

from tasks.stage import StageContext
from vcppo.files import sha256_file
from vcppo.records import Artifact
from vcppo.workspace import checkout_root


def run(context: StageContext) -> dict[str, int]:
    source = checkout_root() / "source.txt"
    context.sources.append(
        Artifact(path="source.txt", sha256=sha256_file(source), bytes=source.stat().st_size, kind="source")
    )
    out = context.out("data/prepared")
    out.mkdir(exist_ok=True)
    (out / "numbers.json").write_text(json.dumps([context.config.seed, 2, 3]))
    (out / "source.txt").write_bytes(source.read_bytes())
    return {"num_numbers": 3}
