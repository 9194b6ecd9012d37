"""Modules that several tests of this folder share are imported by their bare names, and so are processes as tasks."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path += [str(_HERE), str(_HERE.parent / "engine" / "spark")]
