"""The dataset card: what came in, what went out and why, what the rest looks like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.sources.assembly import Assembled, Placed
from tasks.sources.catalogue import licence_of
from tasks.sources.ledger import Ledger
from vcppo.config import DataConfig
from vcppo.config.sources import GeneratedSource, HubSource, Source
from vcppo.files import sha256_file
from vcppo.records import Artifact

MOST_COMMON = 10


def dataset_card(
    data: DataConfig,
    seed: int,
    assembled: Assembled,
    ledgers: Mapping[str, Ledger],
    artifacts: Mapping[str, Artifact],
    files: Mapping[str, tuple[Path, int]],
) -> dict[str, Any]:
    """The card as JSON. artifacts: of each source by name; files: each written file with its number of rows.

    Per source: rows in, removed by reason, out; removals with their particulars (ids, golds, the matching
    benchmark problem); lengths in characters; answers; licence; revision or hash.
    """
    return {
        "seed": seed,
        "sources": [
            _source_entry(source, assembled, ledgers[source.name], artifacts[source.name])
            for source in data.sources
        ],
        "near_duplicate_similarity": data.near_duplicate_similarity,
        "contamination_coverage": data.contamination_coverage,
        "files": {
            name: {"rows": rows, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
            for name, (path, rows) in files.items()
        },
    }


def _source_entry(source: Source, assembled: Assembled, ledger: Ledger, artifact: Artifact) -> dict[str, Any]:
    train = [item for item in assembled.train if item[0] is source]
    evaluation = [item for item in assembled.evaluation if item[0] is source]
    return {
        "name": source.name,
        "kind": source.kind,
        "origin": artifact.path,
        "sha256": artifact.sha256,
        "revision": source.revision if isinstance(source, HubSource) else None,
        "licence": source.licence if isinstance(source, GeneratedSource) else licence_of(source),
        "grader": source.grader,
        "use": source.use,
        "rows_in": ledger.rows_in,
        "removed": dict(sorted(ledger.removed.items())),
        "listed": ledger.listed,
        "train_rows": len(train),
        "eval_rows": len(evaluation),
        "problem_characters": _quantiles([len(gold.problem.shown) for _, gold in train + evaluation]),
        "answers": _answers(train + evaluation),
    }


def _quantiles(values: Sequence[int]) -> dict[str, int] | None:
    """Least, quartiles and largest."""
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    places = {"min": 0, "q25": last // 4, "median": last // 2, "q75": 3 * last // 4, "max": last}
    return {name: ordered[place] for name, place in places.items()}


def _answers(placed: Sequence[Placed]) -> dict[str, Any]:
    counts = Counter(gold.gold for _, gold in placed)
    # ties in the order of the answers, so that the card does not depend on the order of rows
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_COMMON]
    return {"distinct": len(counts), "most_common": dict(common)}
