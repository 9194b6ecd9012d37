"""One server that works off what arrives in its order, and what it has done when time is up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
#: The machine is planned with so much of its capacity; arrivals come in bursts.
HEADROOM = 0.97


def finished(times: Numbers, work: Numbers) -> Numbers:
    """When each piece of work is done: whoever comes waits for those before.

    >>> finished(np.array([0.0, 1.0, 5.0]), np.array([2.0, 2.0, 1.0])).tolist()
    [2.0, 4.0, 6.0]
    """
    done = np.cumsum(work)
    return np.asarray(done + np.maximum.accumulate(times - (done - work)))


def arrivals(rate: float, seconds: float, rng: np.random.Generator) -> Numbers:
    """Times of arrival at random, so many a second."""
    return np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
