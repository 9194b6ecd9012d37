"""The functions of dates and times. All times are UTC."""

from __future__ import annotations

from penstock.sql.function import Function
from penstock.sql.times.conversion import CONVERTED
from penstock.sql.times.distance import DISTANCES
from penstock.sql.times.parts import PARTS
from penstock.sql.times.rounding import ROUNDED

TIMES: tuple[Function, ...] = (*PARTS, *DISTANCES, *ROUNDED, *CONVERTED)
