"""Source kind `hub` where there is no hub: what is missing, what may stand in, and no token anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.sources import hub
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
