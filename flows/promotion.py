"""What a flow does with the verdict of the promotion gate (`evaluate.promotion`): it keeps what passed.

`promoted/` of the workspace holds the last one and where it comes from, laid out as a workspace is:
`models/policy`, the run records above it (so `python -m vcppo lineage promoted/models/policy` works), its
samples (so `python -m vcppo compare promoted .` does) and `promotion.json`. Git does not see it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from vcppo.errors import DataError
from vcppo.files import publish, remove, sha256_path, storage_errors, write_json_atomic
from vcppo.records import RECORDS, now, read_record

PROMOTED = Path("promoted")
POLICY = "models/policy"
EVALUATION = "metrics/evaluate.json"
KEPT = (POLICY, "data/evaluation", EVALUATION)
STAGED = Path("work/promoted")


@dataclass(frozen=True)
class Promotion:
    """What became of tonight's policy."""

    outcome: Literal["promoted", "already promoted", "not promoted"]
    reasons: tuple[str, ...]
    """Why it did not pass the gate."""
    policy_sha256: str
    """Of the policy that was judged."""
    last: dict[str, Any] | None
    """`promotion.json` of the policy that now stands in `promoted/`; None: none ever passed."""

    def as_sentence(self) -> str:
        """For a log or an artifact."""
        judged = f"policy {self.policy_sha256[:12]}"
        if self.outcome != "not promoted":
            return f"{judged} passed the promotion gate: {self.outcome}"
        stands = f"policy {self.last['policy_sha256'][:12]} stays" if self.last else "none has passed yet"
        return f"{judged} was not promoted: {'; '.join(self.reasons)}; {stands}"

    def as_result(self) -> dict[str, Any]:
        return asdict(self)


def promote(workspace: Path, flow_run: str | None = None) -> Promotion:
    """Put the evaluated policy into `promoted/` if it passed the gate, in place of the one before.

    Raises DataError if there is no verdict, or the policy there is not the one that was evaluated;
    StorageError.
    """
    evaluation = _read(workspace / EVALUATION)
    verdict = (evaluation or {}).get("promotion")
    if evaluation is None or verdict is None:
        raise DataError(f"{workspace / EVALUATION}: holds no verdict on promotion; run stage evaluate again")
    record = read_record(workspace / RECORDS / "evaluate.json")
    judged = next((artifact.sha256 for artifact in record.inputs if artifact.path == POLICY), None)
    if judged is None:
        raise DataError(
            f"{RECORDS}/evaluate.json: names no {POLICY} among its inputs; run stage evaluate again"
        )
    last = _read(workspace / PROMOTED / "promotion.json")
    if not verdict["passed"]:
        return Promotion("not promoted", tuple(verdict["reasons"]), judged, last)
    if last is not None and last["policy_sha256"] == judged:
        return Promotion("already promoted", (), judged, last)
    kept = {
        "policy_sha256": judged,
        "promoted": now(),
        "flow_run": flow_run,
        "evaluate_fingerprint": record.fingerprint,
        "code": record.code,
        "after": evaluation["after"],
        "difference": evaluation.get("difference"),
        "replaces": None if last is None else last["policy_sha256"],
    }
    with storage_errors(workspace / PROMOTED):
        _keep(workspace, kept)
    return Promotion("promoted", (), judged, kept)


def _keep(workspace: Path, kept: dict[str, Any]) -> None:
    staged = workspace / STAGED
    remove(staged)
    for name in KEPT:
        source, target = workspace / name, staged / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # copies, not links: what DVC has in its cache is shared by every workspace
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    (staged / RECORDS).mkdir()
    for source in (workspace / RECORDS).glob("*.json"):
        shutil.copy2(source, staged / RECORDS / source.name)
    found = sha256_path(staged / POLICY)
    if found != kept["policy_sha256"]:
        remove(staged)
        raise DataError(
            f"{workspace / POLICY}: its hash is {found[:12]}, evaluated was {kept['policy_sha256'][:12]}; "
            "nothing was promoted: run the flow again"
        )
    write_json_atomic(staged / "promotion.json", kept)
    (staged / ".gitignore").write_text("*\n", encoding="utf-8")
    publish(staged, workspace / PROMOTED, link=True)
    remove(staged)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
