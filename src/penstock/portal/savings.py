"""What feedback has saved, counted and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from penstock.errors import counted
from penstock.plan.place import Place

#: How reports name what was saved, behind the place where.
_NAMES = {
    "never read": "never_read",
    "dropped": "dropped",
    "purged": "purged",
    "row groups skipped": "row_groups",
    "files skipped": "files",
}


@dataclass(frozen=True)
class Savings:
    """Rows never read, rows dropped before further work, and rows purged from state.

    >>> saved = {"source:cars never read": 900, "source:cars files skipped": 1, "join-1#0 dropped": 300}
    >>> print(Savings.of(saved))
    spared 1,200 rows, 900 of them never read
    >>> Savings.of(saved, "join-1").dropped
    300
    """

    never_read: int = 0
    dropped: int = 0
    purged: int = 0
    row_groups: int = 0
    files: int = 0

    @classmethod
    def of(cls, saved: Mapping[str, int], operator: str | None = None) -> Savings:
        """All of it, or that of one operator and its inputs."""
        counts = {f.name: 0 for f in fields(cls)}
        for key, count in saved.items():
            place, what = _parted(key)
            if what in _NAMES and operator in (None, place):
                counts[_NAMES[what]] += count
        return cls(**counts)

    @classmethod
    def by_operator(cls, saved: Mapping[str, int]) -> list[tuple[str, Savings]]:
        """Who has saved what, the most first.

        >>> [n for n, _ in Savings.by_operator({"join-1#0 dropped": 3, "source:my cars never read": 9})]
        ['source:my cars', 'join-1']
        """
        found = [(name, cls.of(saved, name)) for name in dict.fromkeys(_parted(key)[0] for key in saved)]
        return sorted(found, key=lambda pair: -(pair[1].rows + pair[1].purged))

    @property
    def rows(self) -> int:
        """Rows of streams that were spared work. Rows of state are another matter: they may be sums of many."""
        return self.never_read + self.dropped

    def __bool__(self) -> bool:
        return self != Savings()

    def __str__(self) -> str:
        return self.text()

    def text(self, count: Callable[[float], str] = "{:,}".format) -> str:
        """In a few words, with numbers as exact as wanted.

        >>> print(Savings(purged=5), Savings(), sep="; ")
        purged 5 rows of state; spared nothing
        """
        parts = []
        if self.rows:
            never = f", {count(self.never_read)} of them never read" if self.never_read else ""
            parts.append(f"spared {count(self.rows)} {_rows(self.rows)}{never}")
        if self.purged:
            parts.append(f"purged {count(self.purged)} {_rows(self.purged)} of state")
        return ", ".join(parts) or "spared nothing"

    def detail(self) -> str:
        """In more words, for one operator.

        >>> Savings(never_read=900, dropped=300, row_groups=4, files=1).detail()
        '900 rows never read (4 row groups, 1 whole file), 300 dropped'
        """
        parts = []
        if self.never_read:
            skipped = ((self.row_groups, "row group"), (self.files, "whole file"))
            said = ", ".join(counted(n, what) for n, what in skipped if n)
            parts.append(f"{counted(self.never_read, 'row')} never read" + (f" ({said})" if said else ""))
        if self.dropped:
            parts.append(f"{self.dropped:,} dropped" if parts else f"{counted(self.dropped, 'row')} dropped")
        if self.purged:
            parts.append(f"{counted(self.purged, 'row')} of state purged")
        return ", ".join(parts)


def _parted(key: str) -> tuple[str, str]:
    """The operator and what it has saved. Names of streams may have blanks."""
    what = next((w for w in _NAMES if key.endswith(f" {w}")), "")
    return Place(key.removesuffix(f" {what}")).node, what


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"
