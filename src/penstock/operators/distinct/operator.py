"""Distinct: each event once."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan.operator import Operator


@dataclass(frozen=True, eq=False)
class Distinct(Operator):
    """Each event once, at its first appearance; two nulls count as the same value."""

    @property
    def detail(self) -> str:
        return "whole events"
