"""In which order the files of a folder have their turn: as they come, or first what somebody prefers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice

from penstock.engine.source.folder import FoundFile
from penstock.engine.source.formats.footer import Footer
from penstock.engine.source.formats.splits import NotReady, TextShape, Vanished
from penstock.pattern.pattern import Pattern

# How many files are looked into to find what somebody prefers.
_LOOKED_AHEAD = 1_000

#: A file, and which of its row groups have their turn; None means all that is left of it.
Wanted = tuple[FoundFile, Collection[int] | None]


def in_turn(
    files: Iterator[FoundFile], prefer: tuple[Pattern, ...], shape: Callable[[FoundFile], Footer | TextShape]
) -> Iterator[Wanted]:
    """Files in the order in which they are to be read; with row groups where only some of them have their turn."""
    if prefer:
        turns: list[list[Wanted]] = [[] for _ in (*prefer, None)]
        for file in islice(files, _LOOKED_AHEAD):
            try:
                footer = shape(file)
            except (NotReady, Vanished):
                turns[-1].append((file, None))  # what is wrong with it is told when its turn comes
                continue
            if not isinstance(footer, Footer) or not footer.rows:
                turns[-1].append((file, None))
                continue
            ranked: dict[int, set[int]] = {}
            for index in range(len(footer.groups)):
                ranked.setdefault(footer.statistics.rank(index, prefer), set()).add(index)
            for turn, groups in ranked.items():
                turns[turn].append((file, groups))
        yield from (wanted for turn in turns for wanted in turn)
    yield from ((file, None) for file in files)
