"""Source kind `hub`: what it reads from a hub, what it says where there is none, and no token anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.sources import hub
from tests.tasks.sources.hub_server import HubServer
from vcppo.config.sources import HubSource
from vcppo.errors import DataError


def source(**values: Any) -> HubSource:
    return HubSource.model_validate({"name": "mine", "revision": "a" * 40, **values})


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    # what the library itself does without a network, minus a minute of retries
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("offline")
def test_without_a_network_the_dataset_and_its_stand_in_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with pytest.raises(DataError) as raised:
        list(hub.read(source(dataset="aime_2025_opencompass")))
    said = str(raised.value)
    assert "opencompass/AIME2025 (configuration AIME2025-I, split test) at revision aaaa" in said
    assert "`kind: file` with `path`, `sha256` and `dataset: aime_2025_opencompass`" in said
    assert "hf_secret" not in said


def test_a_gated_dataset_without_a_token_says_where_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(DataError, match=r"Idavidrein/gpqa is gated.*environment variable HF_TOKEN"):
        list(hub.read(source(dataset="gpqa", grader="gpqa")))


def test_a_token_in_a_message_is_blotted_out() -> None:
    assert hub.without_token("401 for hf_secret", "hf_secret") == "401 for <HF_TOKEN>"
    assert hub.without_token("401", None) == "401"


def test_a_source_must_say_which_dataset_and_which_commit() -> None:
    with pytest.raises(ValidationError, match="needs `dataset`"):
        source()
    with pytest.raises(ValidationError, match="revision"):
        source(dataset="gsm8k", revision="main")


def test_a_mirror_of_a_known_dataset_may_be_named() -> None:
    assert hub.repository_of(source(dataset="gsm8k")) == "openai/gsm8k"
    assert hub.repository_of(source(dataset="gsm8k", repository="me/mirror")) == "me/mirror"


# --- a hub on loopback -----------------------------------------------------------------------------------

CARD = """---
configs:
- config_name: main
  data_files:
  - {split: train, path: main/train.jsonl}
  - {split: test, path: main/test.jsonl}
---
"""
COMMIT, UNKNOWN, KEY = "a" * 40, "b" * 40, "hf_of_a_test"
READ = """
import json, sys
from tasks.sources import hub
from vcppo.config.sources import HubSource
from vcppo.errors import DataError
for values in json.loads(sys.argv[1]):
    try:
        read = [[p.text, p.answer, p.where] for p in hub.read(HubSource.model_validate(values))]
    except DataError as error:
        read = str(error)
    print(json.dumps(read))
"""


@pytest.fixture
def gsm8k() -> Iterator[HubServer]:
    def row(number: int) -> str:
        return json.dumps({"question": f"How many are {number}?", "answer": f"So\n#### {number}"}) + "\n"

    files = {"README.md": CARD, "main/train.jsonl": row(1), "main/test.jsonl": row(2) + row(3)}
    server = HubServer("openai/gsm8k", COMMIT, files)
    yield server
    server.close()


def read(server: HubServer, home: Path, *sources: dict[str, Any], token: str | None = None) -> list[Any]:
    """What each source gives, in a process of its own: the library reads the hub's address when it is
    imported."""
    given = [{"name": "g", "dataset": "gsm8k", "revision": COMMIT, "use": "eval", **more} for more in sources]
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    variables |= {"HF_ENDPOINT": server.url, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", READ, json.dumps(given)],
        env={**variables, **({"HF_TOKEN": token} if token else {})},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_rows_come_from_the_pinned_commit_and_a_benchmark_from_the_test_split(
    gsm8k: HubServer, tmp_path: Path
) -> None:
    evaluated, trained, wrong = read(gsm8k, tmp_path, {}, {"use": "train"}, {"revision": UNKNOWN})
    where = f"openai/gsm8k@{COMMIT[:12]} main"
    assert evaluated == [
        ["How many are 2?", "2", f"{where}/test: row 1"],
        ["How many are 3?", "3", f"{where}/test: row 2"],
    ]
    assert trained == [["How many are 1?", "1", f"{where}/train: row 1"]]
    assert (
        f"at revision {UNKNOWN} cannot be loaded: DatasetNotFoundError: Revision '{UNKNOWN}' doesn't" in wrong
    )
    assert "exist for dataset 'openai/gsm8k' on the Hub. Check the network, the revision" in wrong


@pytest.mark.slow
def test_a_gated_dataset_is_refused_without_the_right_token_and_rows_of_another_commit_are_no_stand_in(
    gsm8k: HubServer, tmp_path: Path
) -> None:
    gsm8k.token = KEY
    assert len(read(gsm8k, tmp_path, {}, token=KEY)[0]) == 2
    # the cache now has rows of one commit; the hub refuses, and the library would give them for any other
    gated, other = read(gsm8k, tmp_path, {}, {"revision": UNKNOWN})
    assert len(gated) == 2, "the pinned commit itself may come from the cache"
    assert "cannot be loaded: LookupError: the hub did not give it" in other
    assert f"the cache holds another revision, {COMMIT}" in other
    (fresh,) = read(gsm8k, tmp_path / "fresh", {}, token="hf_of_another")
    assert "Dataset 'openai/gsm8k' is a gated dataset on the Hub" in fresh
    assert "for a gated dataset, HF_TOKEN" in fresh and "hf_of_another" not in fresh
