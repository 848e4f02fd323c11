"""The policy that passed the gate is kept with all that says where it comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flows.promotion import promote
from tests.toy import commit, git, make_checkout, python, set_param
from vcppo.errors import DataError
from vcppo.files import sha256_path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def reproduced(checkout: Path) -> Path:
    done = python(checkout, "-P", "-m", "dvc", "repro", "evaluate")
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


def kept(checkout: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((checkout / "promoted" / "promotion.json").read_text())
    return values


def test_a_policy_is_promoted_once_stays_when_the_next_is_refused_and_goes_when_the_next_passes(
    tmp_path: Path,
) -> None:
    checkout = reproduced(make_checkout(tmp_path / "checkout"))
    commit(checkout, "Results")
    first = promote(checkout, "nightly/one")
    assert first.outcome == "promoted" and first.last is not None
    assert (kept(checkout)["flow_run"], kept(checkout)["replaces"]) == ("nightly/one", None)
    assert kept(checkout)["after"]["toy"]["average_at_k"] == 0.875
    assert sha256_path(checkout / "promoted/models/policy") == first.policy_sha256
    assert git(checkout, "status", "--porcelain") == ""
    again = promote(checkout)
    assert (again.outcome, again.policy_sha256) == ("already promoted", first.policy_sha256)
    assert kept(checkout)["flow_run"] == "nightly/one"

    set_param(checkout, "lam_actor: 0.95", "lam_actor: 0.9")
    set_param(checkout, "  pass_at: [1, 4]", "  pass_at: [1, 4]\n  promotion: {min_average: 0.9}")
    refused = promote(reproduced(checkout))
    assert refused.outcome == "not promoted" and refused.policy_sha256 != first.policy_sha256
    assert refused.reasons == ("toy: average 0.8750 is below the minimum 0.9",)
    assert "stays" in refused.as_sentence() and kept(checkout)["policy_sha256"] == first.policy_sha256
    # the records of its own time are kept with it, so its lineage holds although another was trained since
    lineage = python(checkout, "-m", "vcppo", "lineage", "promoted/models/policy")
    assert lineage.returncode == 0, lineage.stdout + lineage.stderr
    assert "unchanged; made by stage train" in lineage.stdout and "lam_actor = 0.95" in lineage.stdout

    set_param(checkout, "min_average: 0.9", "min_average: 0.8")
    second = promote(reproduced(checkout))
    assert second.outcome == "promoted" and second.policy_sha256 == refused.policy_sha256
    assert kept(checkout)["replaces"] == first.policy_sha256
    assert sha256_path(checkout / "promoted/models/policy") == second.policy_sha256


def test_only_the_policy_that_was_evaluated_is_promoted(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    with pytest.raises(DataError, match="holds no verdict on promotion; run stage evaluate again"):
        promote(checkout)
    reproduced(checkout)
    weights = checkout / "models/policy/weights.json"
    text = weights.read_text()
    weights.unlink()
    weights.write_text(text + " ")
    with pytest.raises(DataError, match=re.escape(f"{checkout / 'models/policy'}: its hash is ")):
        promote(checkout)
    assert not (checkout / "promoted").exists()
