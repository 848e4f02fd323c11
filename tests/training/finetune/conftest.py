"""A saved policy that a job of a second can start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.finetune import small
from training.finetune.rollouts import Rollout


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    small.write_policy(folder)
    return folder


@pytest.fixture
def rollouts() -> list[Rollout]:
    return small.make_rollouts()
