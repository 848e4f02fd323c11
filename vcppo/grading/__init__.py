"""Grading: one grader for reward and evaluation. No torch, and no algebra outside the worker processes.

result         the grade, its five statuses, the benchmarks
extract        where a response says its final answer (after thinking, last box, else last statement)
boxes          complete boxes of a text; neighbouring ones as one enumeration
statements     explicit answer statements in prose
rivals         what joins two answers, and what denies one
alternatives   values offered beside an answer
touching       mathematics that touches a box and changes its value
spelling       the ways in which one value may be written
vocabulary     word lists of these rules
aime           integers, compared as integers
gpqa           option letters
steps          independent steps, of which some may be wrong
math_grader    MATH: text first, the rest to the pool
math_text      MATH: one spelling for one value, and what the text alone decides
math_latex     MATH: one spelling for one LaTeX command
math_refusals  MATH: differences that algebra would overlook
math_cost      MATH: answers too costly to evaluate
symbolic       MATH: Math-Verify on two expressions (imported in worker processes only)
worker         the process in which that runs
process        its owner's side: ask, kill, replace
pool           killable workers with limits; batches with a canary pair
graders        `grade`, `canonical_gold`, `grade_batch`

To add a benchmark: name it in `result.BENCHMARKS`, write its module, register it in `graders`.
"""

from __future__ import annotations

from vcppo.grading.graders import canonical_gold, grade, grade_batch
from vcppo.grading.result import BENCHMARKS, Grade, GradeItem

__all__ = ["BENCHMARKS", "Grade", "GradeItem", "canonical_gold", "grade", "grade_batch"]
