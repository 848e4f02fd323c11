"""transformers without bars and load reports: what they would warn of is checked here and raised as an
error.
"""

from __future__ import annotations

from functools import cache


@cache
def quiet_transformers() -> None:
    """Once a process: no progress bars, errors only."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
