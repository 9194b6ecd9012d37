"""The functions of texts and bytes."""

from __future__ import annotations

from penstock.sql.function import Function
from penstock.sql.strings.bytes import BYTES
from penstock.sql.strings.format import FORMATTED
from penstock.sql.strings.making import MADE
from penstock.sql.strings.matching import MATCHED
from penstock.sql.strings.pieces import PIECES

STRINGS: tuple[Function, ...] = (*MADE, *PIECES, *FORMATTED, *BYTES, *MATCHED)
