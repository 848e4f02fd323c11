"""Toy stage: counts to train.num_steps, one checkpoint a step; files in $TOY_TROUBLE make it fail once or
wait."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from tasks.stage import StageContext
from vcppo.errors import ConfigurationError
from vcppo.files import write_json_atomic


def run(context: StageContext) -> dict[str, int]:
    trouble = Path(os.environ.get("TOY_TROUBLE", "no-trouble"))
    if (trouble / "configuration").exists():
        raise ConfigurationError("train.num_steps: got a toy value, allowed is another")
    checkpoint = context.work / "checkpoint.json"
    step = json.loads(checkpoint.read_text())["step"] if checkpoint.exists() else 0
    begin = step
    context.say(f"from step {step}")
    total = context.config.train.num_steps
    while step < total:
        step += 1
        write_json_atomic(checkpoint, {"step": step})
        context.progress(step, total)
        if step == 2 and (trouble / "kill").exists():
            (trouble / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        while step == 2 and (trouble / "wait").exists():
            time.sleep(0.05)
    policy = context.out("models/policy")
    policy.mkdir(exist_ok=True)
    (policy / "weights.json").write_text(json.dumps({"lam_actor": context.config.train.gae.lam_actor}))
    metrics = {"steps": step, "began_at": begin}
    write_json_atomic(context.out("metrics/train.json"), metrics)
    return metrics
