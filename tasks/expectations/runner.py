"""The one place that talks to Great Expectations: runs suites on data frames, writes Data Docs, gives
findings.

The library's context lives in memory only; nothing is scaffolded into the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS_NAMED = 20

Outcome = Literal["passed", "failed", "raised"]


@dataclass(frozen=True)
class Finding:
    """What came of one expectation."""

    suite: str
    name: str
    """Its name in `suites`."""
    expectation: str
    """Its type with its arguments, on one line."""
    severity: str
    outcome: Outcome
    """`raised`: the check itself went wrong, which says nothing about the data."""
    unexpected: int = 0
    rows: tuple[str, ...] = ()
    """At most `MAX_ROWS_NAMED` failing rows: id and the value found."""
    detail: str = ""
    """Observed value of a check on the whole table, or the exception's message."""

    def line(self) -> str:
        """For a person."""
        rows = f"; {self.unexpected} rows: {', '.join(self.rows)}" if self.rows else ""
        more = ", ..." if self.unexpected > len(self.rows) > 0 else ""
        detail = f"; {self.detail}" if self.detail else ""
        return f"{self.suite}: {self.name}: {self.expectation}{rows}{more}{detail}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_suites(suites: Mapping[str, tuple[pd.DataFrame, list[Any]]], docs: Path) -> list[Finding]:
    """Check each named (frame, expectations); the frames have a column `id`. Writes Data Docs into `docs`."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    context.add_data_docs_site(site_name="validation", site_config=_site(docs))
    datasource = context.data_sources.add_pandas("prepared")
    findings: list[Finding] = []
    for name, (frame, expectations) in suites.items():
        asset = datasource.add_dataframe_asset(name)
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(
                name=name,
                data=asset.add_batch_definition_whole_dataframe(name),
                suite=context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations)),
            )
        )
        result = definition.run(
            batch_parameters={"dataframe": frame},
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": ["id"],
                "partial_unexpected_count": MAX_ROWS_NAMED,
            },
        )
        findings += [_finding(name, each) for each in result.results]
    context.build_data_docs(site_names=["validation"])
    return findings


def _finding(suite: str, validation: Any) -> Finding:
    result = validation.to_json_dict()
    config = result["expectation_config"]
    arguments = {key: value for key, value in config["kwargs"].items() if key != "batch_id"}
    written = ", ".join(f"{key}={_argument(value)}" for key, value in sorted(arguments.items()))
    values = result["result"]
    exception = _exception(result["exception_info"])
    outcome: Outcome = "raised" if exception is not None else "passed" if result["success"] else "failed"
    rows: tuple[str, ...] = ()
    detail = exception or ""
    if outcome == "failed":
        rows = tuple(_row(row, arguments) for row in values.get("partial_unexpected_index_list") or ())
        detail = _whole_table(values)
    return Finding(
        suite,
        str(config["meta"]["name"]),
        f"{config['type']}({written})",
        config["severity"],
        outcome,
        unexpected=values.get("unexpected_count", 0),
        rows=rows[:MAX_ROWS_NAMED],
        detail=detail,
    )


def _argument(value: Any) -> str:
    if isinstance(value, Mapping) and value.get("type") == "comparison":
        return f"[{value['column']['name']} {value['operator']} {value['parameter']!r}]"
    return repr(value)


def _row(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    column = arguments["column"]
    return str(row["id"]) if column == "id" else f"{row['id']} ({row[column]!r})"


def _whole_table(values: Mapping[str, Any]) -> str:
    """What a check on the whole table saw."""
    parts = []
    if values.get("observed_value") is not None:
        parts.append(f"observed {values['observed_value']!r}")
    if values.get("partial_missing_list"):
        parts.append(f"missing {values['partial_missing_list']!r}")
    return ", ".join(parts)


def _exception(info: Mapping[str, Any]) -> str | None:
    """The message of an exception inside a check; the library keys it by metric, or gives it flat."""
    entries = [info] if "raised_exception" in info else list(info.values())
    messages = [str(entry.get("exception_message")) for entry in entries if entry.get("raised_exception")]
    return messages[0] if messages else None


def _site(docs: Path) -> dict[str, Any]:
    return {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs.resolve())},
    }
