"""Impute: an expensive function behind a queue."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.operators.map.operator import Map


@dataclass(frozen=True, eq=False)
class Impute(Map):
    """An expensive function with a queue of its own: results as of Map, but at most `budget` events in an epoch.

    The others wait, and punctuation that speaks of them waits with them.
    """

    budget: int = 1000

    @property
    def detail(self) -> str:
        return f"{self.called}, {self.budget:,} an epoch"
