"""SFT: which tokens are imitated, which traces are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.training.finetune import small
from training.finetune.batches import IGNORED
from training.finetune.distributed import run_job
from training.finetune.sft import collate, read_traces
from training.finetune.trainer import read_history
from training.models import build_initial_policy, load_policy, load_tokenizer
from vcppo.errors import DataError


def write(path: Path, responses: list[str], prompt: str = "1+2") -> Path:
    rows: list[dict[str, Any]] = [
        {"id": f"s/{i}", "prompt": [{"role": "user", "content": prompt}], "response": response}
        for i, response in enumerate(responses)
    ]
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("response", pa.string()),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def test_loss_is_on_the_response_and_its_end_only(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(small.MODEL)
    traces, left_out = read_traces(
        write(tmp_path / "sft.parquet", ["3", "a longer one"]), small.MODEL, 48, 64
    )
    batch = collate(traces)
    assert left_out == 0
    for row, response in enumerate(["3", "a longer one"]):
        labels = batch["labels"][row]
        kept = labels[labels != IGNORED]
        assert tokenizer.decode(kept) == response + "<|im_end|>"
        assert torch.equal(batch["input_ids"][row][labels != IGNORED], kept)
        assert tokenizer.decode(batch["input_ids"][row]).startswith(
            f"<|im_start|>u1+2<|im_end|><|im_start|>a{response}<|im_end|>"
        )


def test_padding_changes_no_loss() -> None:
    """A short trace beside a long one: no attention mask is passed, and none is needed."""
    policy, _ = build_initial_policy(small.MODEL, seed=1)
    traces = sorted(small.make_traces(), key=lambda trace: len(trace.ids))
    short, long = traces[0], traces[-1]
    assert len(short.ids) < len(long.ids)
    with torch.no_grad():
        alone = policy(input_ids=collate([short])["input_ids"]).logits[0]
        beside = policy(input_ids=collate([short, long])["input_ids"]).logits[0, : len(short.ids)]
    torch.testing.assert_close(alone, beside, rtol=1e-5, atol=1e-5)


def test_traces_over_a_limit_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "sft.parquet", ["12345", "123456"])
    traces, left_out = read_traces(path, small.MODEL, 48, 6)  # five characters and the end
    assert (len(traces), left_out) == (1, 1)


@pytest.mark.parametrize(
    ("responses", "limit", "words"),
    [
        ([], 64, "holds no trace"),
        (["123456"], 6, "each of its 1 traces is longer"),
        (["3 € each"], 64, "s/0: the tokenizer has no token for '€'"),
    ],
)
def test_bad_traces_are_named(tmp_path: Path, responses: list[str], limit: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_traces(write(tmp_path / "sft.parquet", responses), small.MODEL, 48, limit)


def test_training_lowers_the_loss_and_leaves_a_policy(tmp_path: Path) -> None:
    job = small.make_job("sft", tmp_path, tmp_path, num_epochs=6.0)
    shown: list[tuple[int, int]] = []
    run_job(small.RUNNERS["sft"], job, lambda done, total, what: shown.append((done, total)))
    losses = [entry["loss"] for entry in read_history(tmp_path) if "loss" in entry]
    assert losses[-1] < 0.8 * losses[0]
    assert shown == [(step, 30) for step in range(1, 31)]
    policy, tokenizer = load_policy(tmp_path / "model")
    assert policy.dtype == torch.float32
    assert policy.config.use_cache
    assert tokenizer.chat_template
