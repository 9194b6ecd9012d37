"""Distinct: each event once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Distinct(Operator):
    """Each event once, at its first appearance; two nulls count as the same value."""

    @property
    def detail(self) -> str:
        return "whole events"
