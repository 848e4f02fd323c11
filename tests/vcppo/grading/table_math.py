"""MATH, whole responses: (response, gold, whether it is right)."""

from __future__ import annotations

MATH: list[tuple[str, str, bool]] = [
    ("The answer is 5.", "5", True),
    (r"The answer is $\frac{1}{2}$.", "0.5", True),
    ("Answer: $3$ and $5$", "3,5", True),
    ("Answer: 3 or 5", "3", False),
    ("Answer: Evelyn", r"\text{Evelyn}", True),
    ("The answer is Evelyn.", r"\text{Evelyn}", True),
    (r"First \boxed{180} then \boxed{204}", "204", True),
    (r"\boxed{180} \boxed{204}", "180204", False),
    (r"\boxed{180} \boxed{204}", "204", False),
    (r"\boxed{0.5} or 1/2", "0.5", True),
    (r"\boxed{\frac12} \boxed{0.5}", "0.5", True),
    ("x=5", "5", False),
    ("Answer: 12:00", "12:00", True),
    ("Answer: (1, 2)", "(1,2)", True),
    ("Answer: $[2,5)$.", "[2,5)", True),
    (r"<think>\boxed{5}", "5", False),
    (r"<think>\boxed{5}</think>", "5", False),
    (r"\boxed{}", "5", False),
    ("", "5", False),
    (r"\boxed{\text{}}", "5", False),
    ("#### 72", "72", True),
    (r"The final answer is $3\sqrt{13}$. I hope it is correct.", r"3\sqrt{13}", True),
    (r"\boxed{5} or 6", "5", False),
]
