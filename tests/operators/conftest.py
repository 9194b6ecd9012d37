"""Tests of the reference operators share the scripts of `tests/reference`, imported by their bare name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "reference"))
