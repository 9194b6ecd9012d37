"""Events that come late: how many of them, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

#: Whole seconds, so that what a window holds can be counted by hand.
SCHEMA = "ts int, key int, value int"


@dataclass(frozen=True)
class Late:
    """A share of the events that is late: up to `most` seconds evenly, or by a heavy tail with this exponent.

    Half of what is late by a tail is later than its median, which is `most`; a tenth of that a hundredfold and more.
    """

    share: float = 0.2
    most: int = 10
    tail: float | None = None

    def delays(self, rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        late = rng.random(count) < self.share
        if self.tail is None:
            return np.where(late, rng.uniform(0, self.most, count), 0.0)
        least = self.most / 2 ** (1 / self.tail)
        return np.where(late, least * (1 - rng.random(count)) ** (-1 / self.tail), 0.0)


def disordered(count: int, keys: int, late: Late, rate: float = 10.0, seed: int = 7) -> pa.Table:
    """Events in order of arrival, `rate` of them in a second; `arrives` is when, in seconds.

    >>> table = disordered(1_000, 3, Late(0.2, 10))
    >>> behind = np.maximum.accumulate(table["ts"].to_numpy()) - table["ts"].to_numpy()
    >>> bool(0.1 < (behind > 0).mean() < 0.2), bool(behind.max() <= 10)
    (True, True)
    """
    rng = np.random.default_rng(seed)
    happens = np.arange(count) / rate
    arrives = happens + late.delays(rng, count)
    order = np.argsort(arrives, kind="stable")
    return pa.table(
        {
            "ts": pa.array(happens[order].astype(np.int32)),
            "key": pa.array(rng.integers(0, keys, count).astype(np.int32)),
            "value": pa.array(rng.integers(0, 1000, count).astype(np.int32)),
            "arrives": arrives[order],
        }
    )
