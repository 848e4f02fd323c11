"""AIME answers graded per second and core, beside Math-Verify on the same answers.

    python -m bench.grading

One run, one thread. Responses are some thousand characters of working with a final box or statement, one in
three of them wrong; each side gets response and gold and extracts the answer itself. Math-Verify runs without
its timeouts, which only cost it time.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

NUM_ANSWERS = 300
REPETITIONS = 30  # of ours, which would otherwise be over before the clock moves
WANTED_RATIO = 100.0
_ENDINGS = (
    r"Hence $m+n = {0}$, so the answer is $\boxed{{{0}}}$.",
    r"The requested sum is \boxed{{{0:03d}}}.",
    r"Therefore $\boxed{{m+n={0}}}$ and we are done.",
    "The remainder is as claimed.\n\nAnswer: {0}",
)
_WORKING = (
    "Let $a_{0}$ be the number of admissible words of length ${0}$; then $a_{0} = 2a_{1} + {2}$. ",
    r"Expanding, $({0}x+{1})^2 = {0}^2x^2 + 2\cdot{0}\cdot{1}x + {1}^2$, which leaves {2} modulo 1000. ",
    r"By the law of cosines the third side is $\sqrt{{{0}^2+{1}^2-{2}}}$, an integer only in this case. ",
)


def make_answers(num_answers: int, seed: int = 0) -> list[tuple[str, str]]:
    """`(response, gold)` pairs of the shapes that a policy writes."""
    draw = random.Random(seed)
    answers = []
    for index in range(num_answers):
        value = draw.randrange(1000)
        gold = value if index % 3 else (value + 1) % 1000
        working = "".join(
            draw.choice(_WORKING).format(*(draw.randrange(2, 500) for _ in range(3))) for _ in range(12)
        )
        answers.append((working + _ENDINGS[index % len(_ENDINGS)].format(value), str(gold)))
    return answers


def main() -> dict[str, float]:
    """Print and return answers per second and core of both graders and their ratio."""
    from math_verify import parse, verify

    from vcppo.grading.aime import grade

    logging.getLogger("math_verify").setLevel(logging.ERROR)
    answers = make_answers(NUM_ANSWERS)

    def by_integers(response: str, gold: str) -> bool:
        return grade(response, gold).status == "right"

    def by_math_verify(response: str, gold: str) -> bool:
        wanted, given = (
            parse(f"${text}$" if text is gold else text, parsing_timeout=None) for text in (gold, response)
        )
        return bool(verify(wanted, given, timeout_seconds=None))

    by_math_verify(*answers[0])  # sympy's lazy imports are not to its account
    ours, our_rate = _measure(by_integers, answers, REPETITIONS)
    theirs, their_rate = _measure(by_math_verify, answers, 1)
    expected = [index % 3 != 0 for index in range(NUM_ANSWERS)]
    result = {
        "answers_per_second": our_rate,
        "math_verify_answers_per_second": their_rate,
        "ratio": our_rate / their_rate,
        "correct": sum(map(bool.__eq__, ours, expected)) / NUM_ANSWERS,
        "math_verify_correct": sum(map(bool.__eq__, theirs, expected)) / NUM_ANSWERS,
    }
    length = sum(len(response) for response, _ in answers) / NUM_ANSWERS
    print(f"AIME, {NUM_ANSWERS} responses of {length:,.0f} characters on average, one core:")
    print(f"  integer grader {our_rate:>12,.0f} answers/s, {result['correct']:.1%} as they should be")
    correct = result["math_verify_correct"]
    print(f"  Math-Verify    {their_rate:>12,.0f} answers/s, {correct:.1%} as they should be")
    print(f"  ratio          {result['ratio']:>12,.0f} (wanted: at least {WANTED_RATIO:g})")
    return result


def _measure(
    grade: Callable[[str, str], bool], answers: list[tuple[str, str]], repetitions: int
) -> tuple[list[bool], float]:
    """Grades and answers per second of processor time."""
    start = time.process_time()
    for _ in range(repetitions):
        grades = [grade(response, gold) for response, gold in answers]
    return grades, repetitions * len(answers) / (time.process_time() - start)


if __name__ == "__main__":
    raise SystemExit(main()["ratio"] < WANTED_RATIO)
