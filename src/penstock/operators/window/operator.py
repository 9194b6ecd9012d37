"""Bucket: events labelled with their windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.plan.window import Window
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Bucket(Operator):
    """Labels each event with the windows it belongs to, one output event per window."""

    word = "window"

    window: Window = field(kw_only=True)

    @property
    def detail(self) -> str:
        return str(self.window)
