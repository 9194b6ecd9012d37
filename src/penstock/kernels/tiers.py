"""Which runs to merge: few of them to look into, each row rewritten rarely, and no epoch that rewrites all of them."""

from __future__ import annotations

from collections.abc import Sequence

#: A run with more rows is left alone, unless there are far more rows together, or far more come in every epoch.
LARGE = 1 << 18
#: As much of all rows makes a run large, and so many times those of an epoch.
SHARE, TIMES = 32, 16


def large(sizes: Sequence[int], new: int) -> int:
    """How many rows make a run large, where there are runs of so many and so many rows are new."""
    return max(LARGE, sum(sizes) // SHARE, TIMES * new)


def tier(sizes: Sequence[int], many: int, large: int) -> list[int]:
    """The numbers of the runs to merge, by their rows; none if there are few enough.

    The smallest are merged, each at most as large as those before it together: so a row is rewritten about as often as
    the number of rows doubles. Large runs neither count nor are merged, so what an epoch rewrites stays in proportion
    to what arrives, however much is held.

    >>> tier([40, 10, 10, 30], many=3, large=100), tier([40, 10, 10, 30], many=4, large=100)
    ([1, 2], [])
    >>> tier([101, 10, 100, 100, 20], many=3, large=100)
    [1, 4]
    """
    small = sorted((i for i, size in enumerate(sizes) if size <= large), key=lambda i: sizes[i])
    if len(small) <= max(many, 1):
        return []
    chosen, rows = small[:2], sizes[small[0]] + sizes[small[1]]
    for i in small[2:]:
        few = len(small) - len(chosen) < many
        if rows + sizes[i] > 2 * large or (few and sizes[i] > rows):
            break
        chosen.append(i)
        rows += sizes[i]
    return chosen
