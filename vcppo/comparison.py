"""Two evaluations on the same questions: are they comparable, and is the difference more than chance?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vcppo.errors import DataError
from vcppo.grading.result import GRADED, STATUSES
from vcppo.statistics import PairedDifference, average_at_k, paired_difference

SAMPLES = "data/evaluation/after.parquet"
FILES_IN_A_FOLDER = (SAMPLES, "after.parquet")
SETTINGS = (
    "samples_per_problem", "temperature", "top_p", "top_k", "max_response_tokens", "engine", "engine_version",
    "dtype", "batch_size",
)  # fmt: skip
"""What must be equal: each of these moves scores, batch size and engine version too."""
COLUMNS = (
    "id", "data_source", "grader", "sample", "gold", "status", "prompt_hash", "permutation", "seed",
    *SETTINGS[1:],
)  # fmt: skip
TEXTS = ("id", "data_source", "grader", "gold", "status", "prompt_hash")
LETTERS = ("A", "B", "C", "D")
SIGNIFICANCE = 0.05
MAX_UNGRADED = 0.02
"""Share of the samples that may be without a grade (an answer that exhausts the grader)."""
Row = dict[str, Any]


def sample_file(path: Path) -> Path:
    """The sample file that a path means. Raises DataError naming where one was looked for."""
    if path.is_file():
        return path
    for name in FILES_IN_A_FOLDER:
        if (path / name).is_file():
            return path / name
    looked = " or ".join(str(path / name) for name in FILES_IN_A_FOLDER) if path.is_dir() else str(path)
    raise DataError(f"{looked}: there is no such file; stage evaluate makes it (`dvc repro evaluate`)")


def read_samples(path: Path) -> dict[str, list[Row]]:
    """Rows of each benchmark. Raises DataError for a file that holds no evaluation, or a row that is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        missing = sorted(set(COLUMNS) - set(pq.read_schema(path).names) - {"samples_per_problem"})
        rows = [] if missing else pq.read_table(path, columns=list(COLUMNS)).to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # damaged footers and pages: OSError
        raise DataError(f"{path}: is no parquet file that can be read: {error}") from None
    if missing:
        raise DataError(f"{path}: holds no evaluation, lacks {', '.join(missing)}; run `dvc repro evaluate`")
    if not rows:
        raise DataError(f"{path}: holds no sample; run `dvc repro evaluate`")
    grouped: dict[str, list[Row]] = defaultdict(list)
    for number, row in enumerate(rows, 1):
        _check_row(f"{path}: row {number}", row)
        grouped[row["data_source"]].append(row)
    return dict(grouped)


def _check_row(where: str, row: Row) -> None:
    for name in TEXTS:
        if not isinstance(row[name], str):
            raise DataError(f"{where}: {name} is {row[name]!r}, allowed is a text; run `dvc repro evaluate`")
    if row["status"] not in STATUSES:
        raise DataError(f"{where}: status is {row['status']!r}, allowed are {', '.join(STATUSES)}")
    if type(row["sample"]) is not int:
        raise DataError(f"{where}: sample is {row['sample']!r}, allowed is a whole number, from 0")
    if not isinstance(row["permutation"], list | None):
        raise DataError(f"{where}: permutation is {row['permutation']!r}, allowed is a list, or nothing")


def compare(
    a: Mapping[str, Sequence[Row]], b: Mapping[str, Sequence[Row]], allow: Sequence[str] = (), seed: int = 0
) -> dict[str, dict[str, Any]]:
    """The paired difference B - A of each benchmark.

    Raises DataError naming each benchmark, question or setting that differs, unless it is in `allow`.
    """
    if set(a) != set(b):
        raise DataError(
            f"not the same benchmarks: A has {', '.join(sorted(a))}; B has {', '.join(sorted(b))}"
        )
    return {benchmark: _compare(benchmark, a[benchmark], b[benchmark], allow, seed) for benchmark in a}


def _compare(
    benchmark: str, a: Sequence[Row], b: Sequence[Row], allow: Sequence[str], seed: int
) -> dict[str, Any]:
    for name, rows in (("A", a), ("B", b)):
        _check_samples(f"{benchmark}: {name}", rows)
    _check_same_questions(benchmark, _questions(f"{benchmark}: A", a), _questions(f"{benchmark}: B", b))
    settings = [_settings(a), _settings(b)]
    differing = [name for name in SETTINGS if settings[0][name] != settings[1][name]]
    words = {name: f"{name} {settings[0][name]} in A, {settings[1][name]} in B" for name in differing}
    if refused := [words[name] for name in differing if name not in allow]:
        raise DataError(
            f"{benchmark}: not the same settings: {'; '.join(refused)}. Evaluate both alike, or accept it "
            "with --allow SETTING"
        )
    means_a, means_b = _question_means(benchmark, "A", a), _question_means(benchmark, "B", b)
    questions = sorted(means_a.keys() & means_b.keys())
    rows_a, rows_b = [means_a[q] for q in questions], [means_b[q] for q in questions]
    result = paired_difference(rows_a, rows_b, seed=seed)
    ungraded = {name: _num_ungraded(rows) for name, rows in (("A", a), ("B", b))}
    return {
        **asdict(result),
        "average_a": average_at_k([[mean] for mean in rows_a]),
        "average_b": average_at_k([[mean] for mean in rows_b]),
        "samples_per_problem": settings[1]["samples_per_problem"],
        "verdict": verdict(result),
        "conclusive": _conclusive(result),
        "notes": [f"accepted: {words[name]}" for name in differing]
        + [
            f"left out: {count} samples of {name} without a grade"
            for name, count in ungraded.items()
            if count
        ],
    }


def verdict(result: PairedDifference) -> str:
    """One sentence: better, worse, equal, or too small to tell and what it would take."""
    if _conclusive(result):
        return f"B is {'better' if result.difference > 0 else 'worse'} than A"
    if result.standard_error == 0 and result.difference == 0:
        return "no question differs between A and B"
    return (
        "too small to tell: the smallest difference this benchmark could show is "
        f"{result.detectable_difference:.4f} (found 80 times of 100 with {result.num_questions} questions)"
    )


def _conclusive(result: PairedDifference) -> bool:
    """Interval and test both say that it is not chance."""
    return result.p_value < SIGNIFICANCE and (result.low > 0 or result.high < 0)


def _check_same_questions(benchmark: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    only_a, only_b = sorted(set(a) - set(b)), sorted(set(b) - set(a))
    if only_a or only_b:
        examples = [
            f"{len(ids)} only in {name} (first: {ids[0]})"
            for name, ids in (("A", only_a), ("B", only_b))
            if ids
        ]
        raise DataError(f"{benchmark}: not the same questions: {'; '.join(examples)}")
    if other := sorted(question for question in a if a[question] != b[question]):
        first = other[0]
        differing = _differing(a[first], b[first], "in A", "in B")
        raise DataError(
            f"{benchmark}: {len(other)} questions are asked or graded otherwise in A and B (first: "
            f"{first}: {differing}). Evaluate both on the same prepared data"
        )


def _questions(where: str, rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    """What makes a question the same one, by its id. Raises DataError if its samples do not agree on it."""
    questions: dict[str, dict[str, str]] = {}
    for row in rows:
        own = {"prompt_hash": row["prompt_hash"], "grader": row["grader"], "gold": _gold(row)}
        first = questions.setdefault(row["id"], own)
        if first != own:
            differing = _differing(first, own, "in one sample", f"in sample {row['sample']}")
            raise DataError(
                f"{where}: question {row['id']} is not the same in all its samples: {differing}; allowed is "
                "one prompt, grader and gold a question. Evaluate it again"
            )
    return questions


def _gold(row: Row) -> str:
    """The gold; of options in an order of the sample's own, the option that its letter stands for."""
    gold: str = row["gold"]
    shown = LETTERS[: len(row["permutation"] or ())]
    return f"option {row['permutation'][shown.index(gold)]}" if gold in shown else gold


def _differing(first: Mapping[str, str], second: Mapping[str, str], in_first: str, in_second: str) -> str:
    return ", ".join(
        f"{name} is {first[name]!r} {in_first}, {second[name]!r} {in_second}"
        for name in first
        if first[name] != second[name]
    )


def _check_samples(where: str, rows: Sequence[Row]) -> None:
    """Raises DataError unless every question has the samples 0, 1, ... of the benchmark, each once."""
    questions: dict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        questions[row["id"]][row["sample"]] += 1
    allowed = range(_samples_per_problem(rows))
    for question, samples in questions.items():
        faults = [f"sample {sample} {count} times" for sample, count in samples.items() if count > 1]
        faults += [f"no sample {sample}" for sample in allowed if sample not in samples]
        faults += [f"a sample {sample}" for sample in samples if sample not in allowed]
        if faults:
            raise DataError(
                f"{where}: question {question} has {faults[0]} ({samples.total()} rows, {len(samples)} "
                "samples); allowed is the same number of samples for each question (most have "
                f"{len(allowed)}), numbered from 0, each once. Evaluate it again"
            )


def _samples_per_problem(rows: Sequence[Row]) -> int:
    """How many samples most questions have, each counted once."""
    samples: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        samples[row["id"]].add(row["sample"])
    return Counter(map(len, samples.values())).most_common(1)[0][0]


def _settings(rows: Sequence[Row]) -> dict[str, Any]:
    """The value of each setting; several values are shown together."""
    values = {name: sorted({str(row[name]) for row in rows}) for name in SETTINGS[1:]}
    return {"samples_per_problem": _samples_per_problem(rows)} | {
        name: " and ".join(value) for name, value in values.items()
    }


def _question_means(benchmark: str, name: str, rows: Sequence[Row]) -> dict[str, float]:
    """Share of right ones among each question's graded samples. Raises DataError when more samples than
    `MAX_UNGRADED` have no grade: what is left would be another benchmark."""
    count = _num_ungraded(rows)
    if count > MAX_UNGRADED * len(rows):
        raise DataError(
            f"{benchmark}: {count} of {len(rows)} samples of {name} have no grade, allowed are "
            f"{MAX_UNGRADED:.0%}; no grade is not a wrong answer. Evaluate it again with a sound grader"
        )
    questions: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row["status"] in GRADED:
            questions[row["id"]].append(row["status"] == "right")
    return {question: sum(right) / len(right) for question, right in questions.items()}


def _num_ungraded(rows: Sequence[Row]) -> int:
    return sum(row["status"] not in GRADED for row in rows)
