"""What must hold of the prepared data: one list of expectations for each flat view.

Each has a name and a default severity: `STOP` ends the stage, `WARN` is reported and counted;
`data.severity` of the configuration overrides it by name. To add one: an entry here, and its column in
`view` if it needs a new one.
"""

from __future__ import annotations

from typing import Any

from tasks.expectations.golds import CANONICAL
from tasks.expectations.signs import NONE
from tasks.expectations.view import PART_COLUMNS, PROBLEM_COLUMNS, TRACE_COLUMNS
from vcppo.config import DataConfig
from vcppo.errors import ConfigurationError

STOP = "critical"
WARN = "warning"
SEVERITIES = {"stop": STOP, "warn": WARN}

AIME_GOLD = r"^(?:0|[1-9][0-9]{0,2})$"
"""An integer from 0 to 999 without leading zeros."""
LEAST_LETTER_P_VALUE = 0.001
"""Gold letters so uneven come about by chance once in a thousand benchmarks."""


def suites(data: DataConfig) -> dict[str, list[Any]]:
    """Expectations by view: `problems`, `traces`, `parts`.

    Raises ConfigurationError if `data.severity` names an expectation that is not there.
    """
    result = {
        "problems": _problems(data),
        "traces": _traces(data),
        "parts": _parts(data),
    }
    names = sorted({each.meta["name"] for expectations in result.values() for each in expectations})
    unknown = sorted(set(data.severity) - set(names))
    if unknown:
        raise ConfigurationError(
            f"data.severity: got {', '.join(unknown)}; expectations are {', '.join(names)}"
        )
    for expectations in result.values():
        for each in expectations:
            if each.meta["name"] in data.severity:
                each.severity = SEVERITIES[data.severity[each.meta["name"]]]
    return result


def _problems(data: DataConfig) -> list[Any]:
    import great_expectations.expectations as gxe
    from great_expectations.expectations.row_conditions import Column

    def one_of(name: str, column: str, *values: str, severity: str = STOP, **more: Any) -> Any:
        return gxe.ExpectColumnValuesToBeInSet(
            column=column, value_set=list(values), severity=severity, meta={"name": name}, **more
        )

    training, evaluation = Column("split") == "train", Column("split") == "eval"
    return [
        _columns(PROBLEM_COLUMNS),
        *(_not_null(column) for column in PROBLEM_COLUMNS),
        one_of("known_split", "split", "train", "eval"),
        one_of("known_source", "source", *(source.name for source in data.sources)),
        gxe.ExpectColumnValuesToBeUnique(column="id", severity=STOP, meta={"name": "unique_id"}),
        gxe.ExpectColumnValuesToBeUnique(
            column="prompt_sha256", severity=STOP, meta={"name": "unique_prompt"}
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="golds_of_prompt",
            min_value=1,
            max_value=1,
            severity=STOP,
            meta={"name": "one_gold_per_prompt"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="prompt_tokens",
            min_value=1,
            max_value=data.max_prompt_tokens,
            severity=STOP,
            meta={"name": "prompt_within_limit"},
        ),
        gxe.ExpectColumnValuesToMatchRegex(
            column="gold",
            regex=AIME_GOLD,
            row_condition=Column("grader") == "aime",
            severity=STOP,
            meta={"name": "aime_gold_0_to_999"},
        ),
        one_of("no_lost_characters", "lost_characters", NONE),
        one_of("gold_canonical", "gold_state", CANONICAL),
        one_of("gold_graded_right", "gold_grade", "right"),
        one_of("gold_plus_one_graded_wrong", "other_grade", "wrong"),
        one_of("template_once", "template", "once"),
        one_of("no_answer_in_prompt", "answer_inside", NONE),
        one_of("no_figure_in_training", "figure", NONE, row_condition=training),
        one_of("no_figure_in_benchmarks", "figure", NONE, severity=WARN, row_condition=evaluation),
        one_of("no_benchmark_overlap", "overlap", NONE),
        one_of("four_distinct_options", "options", "four distinct", "no choice"),
        one_of("expected_language", "language", *data.languages, severity=WARN),
    ]


def _traces(data: DataConfig) -> list[Any]:
    import great_expectations.expectations as gxe

    return [
        _columns(TRACE_COLUMNS),
        *(_not_null(column) for column in TRACE_COLUMNS),
        gxe.ExpectColumnValuesToBeInSet(
            column="problem", value_set=["known"], severity=STOP, meta={"name": "trace_of_training_problem"}
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="response_tokens", min_value=2, severity=STOP, meta={"name": "trace_not_empty"}
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="response_tokens",
            max_value=data.max_response_tokens,
            severity=WARN,
            meta={"name": "trace_within_limit"},
        ),
    ]


def _parts(data: DataConfig) -> list[Any]:
    import great_expectations.expectations as gxe
    from great_expectations.expectations.row_conditions import Column

    return [
        _columns(PART_COLUMNS),
        gxe.ExpectColumnValuesToBeBetween(
            column="rows",
            min_value=data.min_train_problems,
            max_value=data.max_train_problems,
            row_condition=Column("id") == "train",
            severity=STOP,
            meta={"name": "train_problems_within_bounds"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="rows", min_value=1, severity=STOP, meta={"name": "no_source_or_split_empty"}
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="letter_p_value",
            min_value=LEAST_LETTER_P_VALUE,
            severity=STOP,
            meta={"name": "gold_letters_uniform"},
        ),
    ]


def _columns(columns: tuple[str, ...]) -> Any:
    import great_expectations.expectations as gxe

    return gxe.ExpectTableColumnsToMatchSet(
        column_set=list(columns), exact_match=True, severity=STOP, meta={"name": "schema"}
    )


def _not_null(column: str) -> Any:
    import great_expectations.expectations as gxe

    return gxe.ExpectColumnValuesToNotBeNull(
        column=column, severity=STOP, meta={"name": f"{column}_not_null"}
    )
