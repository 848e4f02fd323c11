r"""Words and numbers beside the value in its box: (response, gold, whether it is right). AIME and MATH."""

from __future__ import annotations

UNITS: list[tuple[str, str, bool]] = [
    (r"\boxed{43=42}", "42", False),
    (r"\boxed{42.5 = 42}", "42", False),
    (r"\boxed{x=43=42}", "42", False),
    (r"\boxed{42\text{k}}", "42", False),
    (r"\boxed{42\text{ hundred}}", "42", False),
    (r"\boxed{42\text{ tens}}", "42", False),
    (r"\boxed{42\mathrm{i}}", "42", False),
    (r"\boxed{42\text{π}}", "42", False),
    (r"\boxed{42\text{nd root}}", "42", False),
    (r"\boxed{42\text{!}}", "42", False),
    (r"\boxed{42\text{ squared}}", "42", False),
    (r"\boxed{42\text{ and a half}}", "42", False),
    (r"\boxed{42\text{ thirds}}", "42", False),
    (r"\boxed{42\text{ tenths}}", "42", False),
    (r"\boxed{42\text{ cubed}}", "42", False),
    (r"\boxed{42\text{ factorial}}", "42", False),
    (r"\boxed{42\text{ pi}}", "42", False),
    (r"\boxed{42\text{ dozen}}", "42", False),
    (r"\boxed{42 million}", "42", False),
    (r"\boxed{42 squared}", "42", False),
    (r"\boxed{84/2=42}", "42", True),
    (r"\boxed{42=42}", "42", True),
    (r"\boxed{42\text{ m}}", "42", True),
    (r"\boxed{42\,\mathrm{cm^2}}", "42", True),
    (r"\boxed{42\mathrm{cm}^2}", "42", True),
    (r"\boxed{42\text{nd}}", "42", True),
    (r"\boxed{42\text{ seconds}}", "42", True),
    (r"\boxed{42\text{ roots}}", "42", True),
]
