"""The published numbers: R. J. Fernández-Moctezuma, dissertation, Portland State University 2012, tables 7.4–7.9.

NiagaraST, Java 6, two cores of 3.33 GHz, XML files. Times are seconds, means of 20 runs with standard deviations.
"""

from __future__ import annotations

#: Suite 1: plan -> (before, σ, feedback-aware, σ).
OVERHEAD = {"a": (9.26, 1.04, 9.43, 0.86), "b": (6.18, 0.43, 6.43, 0.63), "c": (11.76, 0.54, 11.92, 0.42)}

#: Suite 2: number of selections -> (off, σ, on, σ), with one feedback per tuple.
CHAIN = {
    "1": (5.77, 0.16, 5.76, 0.11),
    "5": (6.29, 0.10, 6.30, 0.12),
    "10": (7.18, 0.10, 7.21, 0.10),
    "15": (7.94, 0.11, 7.97, 0.16),
}

#: Suite 3: plan -> (expensive calls, dropped by PACE, output, useful share).
UTILITY = {
    "a": (162_000, 0, 324_000, 0.505),
    "b": (162_000, 160_171, 163_829, 1.0),
    "c": (30_931, 17_712, 175_219, 1.0),
}

#: Suite 4: how far upstream -> (JOIN, BUCKET, AVERAGE).
AGGRESSIVENESS = {
    "nowhere": (648_000, 648_000, 1_440),
    "average": (648_000, 648_000, 1_340),
    "bucket": (648_000, 603_010, 1_340),
    "join": (603_019, 603_012, 1_340),
}

#: Suite 5: query -> (seconds without, σ, with, σ).
RESOURCES = {"1": (12.22, 0.18, 9.66, 0.16), "2": (7.34, 0.23, 5.54, 0.25), "3": (7.19, 0.13, 6.31, 0.22)}

#: Suite 5: query -> operator -> (events out without, with).
EVENTS = {
    "1": {"SELECT (occupancy)": (514_421, 287), "SELECT (speed)": (505_481, 0), "UNION": (1_019_902, 150)},
    "2": {"JOIN": (648_000, 464), "BUCKET": (648_000, 457), "MAX": (72_000, 7)},
    "3": {
        "BUCKET (sensor)": (648_000, 1_800),
        "AVERAGE (sensor)": (1_440, 3),
        "BUCKET (probe)": (14_400, 20),
        "AVERAGE (probe)": (1_445, 2),
        "JOIN": (1_440, 2),
    },
}
