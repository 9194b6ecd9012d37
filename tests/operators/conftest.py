"""Tests of operators share scripts, and what they offer in contracts, with others, imported by their bare names."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "reference"))
sys.path.append(str(Path(__file__).parents[1] / "analysis"))
sys.path.append(str(Path(__file__).parents[1] / "contract"))
