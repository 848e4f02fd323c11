"""How much of the training set one source may give."""

from __future__ import annotations

from collections.abc import Mapping

from vcppo.errors import DataError


def balanced(sizes: Mapping[str, int], max_share: float) -> dict[str, int]:
    """The largest number of problems of each source with which none exceeds `max_share` of the sum.

    One cap holds for all: a source below it gives everything, the others give the cap. Raises DataError if
    so few sources have problems that no mixture can keep the share.
    """

    def fits(cap: int) -> bool:
        return cap <= max_share * sum(min(size, cap) for size in sizes.values())

    # what fits with one cap fits with every smaller one: the sum's slope only falls
    low, high = 0, max(sizes.values(), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise DataError(
            f"data.max_source_share: no mixture of {dict(sizes)} problems keeps every source at "
            f"{max_share} of the whole; "
            "raise it or add problems"
        )
    return {name: min(size, low) for name, size in sizes.items()}
