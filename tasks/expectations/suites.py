"""What must hold of the prepared data: one list of expectations for each flat view.

To add one: a line here, and its column in `view` if it is a new one. `severity` says what a failure does:
`STOP` ends the stage, `WARN` is reported and counted.
"""

from __future__ import annotations

from typing import Any

from vcppo.config import DataConfig

STOP = "critical"
WARN = "warning"

AIME_GOLD = r"^(?:0|[1-9][0-9]{0,2})$"
"""An integer from 0 to 999 without leading zeros."""


def problem_expectations(data: DataConfig) -> list[Any]:
    """Of training and evaluation problems together (view `problems_view`)."""
    import great_expectations.expectations as gxe
    from great_expectations.expectations.row_conditions import Column

    columns = ["id", "split", "source", "grader", "prompt_sha256", "prompt_tokens", "gold", "gold_state"]
    return [
        gxe.ExpectTableColumnsToMatchSet(column_set=columns, exact_match=False, severity=STOP),
        gxe.ExpectTableRowCountToBeBetween(min_value=2, severity=STOP),
        *(gxe.ExpectColumnValuesToNotBeNull(column=name, severity=STOP) for name in columns),
        gxe.ExpectColumnDistinctValuesToEqualSet(column="split", value_set=["train", "eval"], severity=STOP),
        gxe.ExpectColumnValuesToBeInSet(
            column="source", value_set=[source.name for source in data.sources], severity=STOP
        ),
        gxe.ExpectColumnValuesToBeUnique(column="id", severity=STOP),
        gxe.ExpectColumnValuesToBeUnique(column="prompt_sha256", severity=STOP),
        gxe.ExpectColumnValuesToBeInSet(column="gold_state", value_set=["canonical"], severity=STOP),
        gxe.ExpectColumnValuesToMatchRegex(
            column="gold",
            regex=AIME_GOLD,
            row_condition=Column("grader") == "aime",
            severity=STOP,
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="prompt_tokens", min_value=1, max_value=data.max_prompt_tokens, severity=STOP
        ),
    ]


def trace_expectations(data: DataConfig) -> list[Any]:
    """Of the SFT traces (view `traces_view`)."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=["id", "problem", "response_tokens"], exact_match=False, severity=STOP
        ),
        gxe.ExpectColumnValuesToNotBeNull(column="id", severity=STOP),
        gxe.ExpectColumnValuesToBeInSet(column="problem", value_set=["known"], severity=STOP),
        gxe.ExpectColumnValuesToBeBetween(column="response_tokens", min_value=2, severity=STOP),
        gxe.ExpectColumnValuesToBeBetween(
            column="response_tokens", max_value=data.max_response_tokens, severity=WARN
        ),
    ]
