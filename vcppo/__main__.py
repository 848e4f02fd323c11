"""`python -m vcppo`: the command line."""

from __future__ import annotations

import sys

from vcppo.cli import main

sys.exit(main())
