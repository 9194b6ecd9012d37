"""The queries of the five suites and of the flights, written with the builder.

Of the published plans only captions, tables and prose are left. Where these do not say more, a plan here is the
plainest one that has the operators and the counts they name. `build` gives for a job the query, and what is told to it
before its first epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import penstock as ps
from benchmarks.feedback_suites.expensive import Ledger, Nearest, Spin, Tap
from benchmarks.feedback_suites.traffic import CROWDED, LOCATION, PROBE, SENSOR, SLOW, minute

UNWANTED = 100
"""Suite 4: the first so many windows are not wanted."""
LEVELS = ("nowhere", "average", "bucket", "join", "scan")
"""Suite 4: how far upstream feedback is taken up."""
LATE = "5 min"
"""Suite 3: what is further behind than this is useless."""
OLD = "1 h"
"""Flights: what was due longer ago than this is of no interest."""
FLIGHTS = "sched timestamp, known timestamp, origin string, dest string, carrier string, flight int, dep_delay int"

Job = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A query, what is told to it before its first epoch, and how the tables call its last operator."""

    query: Any
    feedback: Sequence[str] = ()
    last: str = "output"


def build(job: Job) -> Question:
    """The query of a job."""
    makers = {"1": overhead, "2": chain, "3": utility, "4": aggressiveness, "5": resources, "flights": flights}
    return makers[job["suite"]](job)


def sensor(job: Job, name: str = "sensor") -> Any:
    """Sensor reports in order, with a punctuation a minute."""
    files = ps.stream(name, SENSOR, time="ts").read_parquet(f"{job['data']}/sensor", order="name")
    return files.punctuate(ps.Punctuate.sorted_by("ts"), ps.Punctuate.every("1 min")).ends()


def probe(job: Job) -> Any:
    files = ps.stream("probe", PROBE, time="ts").read_parquet(f"{job['data']}/probe", order="name")
    return files.punctuate(ps.Punctuate.sorted_by("ts"), ps.Punctuate.every("1 min")).ends()


def location(job: Job) -> Any:
    return ps.table("location", LOCATION, key="sensor_id").read_parquet(f"{job['data']}/location.parquet")


def _switched(stream: Any, exploit: bool, propagate: bool) -> Any:
    return stream.feedback(exploit=exploit, propagate=propagate)


def _tapped(job: Job, stream: Any, name: str) -> Any:
    """In runs that count: with a function behind the operator that counts what it gives out and changes nothing."""
    if not job.get("taps"):
        return stream
    return stream.map(Tap(job["taps"], name), keeps=stream.schema.names)


# --- suites 1 and 2: what it costs --------------------------------------------------------------------------------


def overhead(job: Job) -> Question:
    """Three plans over BUCKET, JOIN, MAX, SELECT and UNION; the code before there was feedback can run them too."""
    match job["plan"]:
        case "a":
            one, two = sensor(job, "one").where(f"occupancy > {CROWDED}"), sensor(job, "two").where(f"speed > {SLOW}")
            stream = one.union(two)
        case "b":
            stream = sensor(job).where(f"occupancy > {CROWDED}")
        case "c":
            stream = sensor(job, "one").join(sensor(job, "two"), on=["sensor_id", "ts"])
        case other:
            raise ValueError(f"suite 1 has no plan {other}")
    return Question(stream.window("1 min").agg(top="max(speed)"))


def chain(job: Job) -> Question:
    """So many selections that are always true. They pass feedback on and do nothing else about it."""
    stream = sensor(job)
    for _ in range(int(job["plan"])):
        stream = stream.where("volume > -1")
        if job["mode"] == "told":
            stream = _switched(stream, exploit=False, propagate=True)
    return Question(stream)


def useless(schema: Any, epoch: int, until: int) -> str:
    """A feedback that matches nothing, different in every epoch, and over when time has got to a minute of the data.

    >>> useless(ps.Schema.parse("window_start timestamp, top int", "window_start"), 61, 100)
    "not [< '2010-02-15 10:40:00', 10061]"
    """
    later = f"< '{minute(until)}'"
    first, *others = schema.names
    if schema.times[:1] == (first,):
        return f"not [{later}, {10_000 + epoch}{', *' * (len(others) - 1)}]"
    return f"not [{10_000 + epoch}, {later}{', *' * (len(others) - 1)}]"


# --- suite 3: useful work -----------------------------------------------------------------------------------------


def utility(job: Job) -> Question:
    """Reports without a speed get one by an expensive function, beside the others; then both come together."""
    reports = sensor(job).with_columns(imputed="false")
    clean, dirty = reports.where("speed <> -1"), reports.where("speed = -1")
    spin = Spin(Ledger(job["ledger"]), job["micros"])
    keeps = ["sensor_id", "ts", "ts_text", "volume", "occupancy"]
    mended = dirty.impute(spin, budget=job["budget"], keeps=keeps)
    match job["plan"]:
        case "a":
            return Question(clean.union(mended))
        case "b":
            together = _switched(clean.pace(mended, on="ts", bound=LATE), exploit=True, propagate=False)
        case "c":
            # As published: the queue is pruned, and nobody before it is told.
            mended = _switched(mended, exploit=True, propagate=False)
            clean = _switched(clean, exploit=False, propagate=False)
            together = clean.pace(mended, on="ts", bound=LATE)
        case other:
            raise ValueError(f"suite 3 has no plan {other}")
    return Question(together)


# --- suite 4: how far upstream --------------------------------------------------------------------------------------


def aggressiveness(job: Job) -> Question:
    """Two streams of the same reports, joined, averaged by the minute. The first hundred minutes are not wanted."""
    reached = LEVELS.index(job["plan"])
    joined = sensor(job, "one").join(sensor(job, "two"), on=["sensor_id", "ts"])
    joined = _tapped(job, _switched(joined, exploit=reached >= 3, propagate=reached >= 4), "JOIN")
    windows = _switched(joined.window("1 min"), exploit=reached >= 2, propagate=reached >= 3)
    grouped = _tapped(job, windows, "BUCKET").group_by("window_start")
    averages = _switched(grouped.agg(mean="avg(speed)"), exploit=reached >= 1, propagate=reached >= 2)
    feedback = [f"not [< '{minute(job.get('unwanted', UNWANTED))}', *]"] if reached else []
    return Question(averages, feedback, "AVERAGE")


# --- suite 5: resources -------------------------------------------------------------------------------------------


def resources(job: Job) -> Question:
    """Three queries and feedback that leaves next to nothing to be done."""
    question = {"1": _filters, "2": _highest, "3": _averages}[job["plan"]](job)
    return question if job["mode"] == "told" else replace(question, feedback=())


def _filters(job: Job) -> Question:
    """Two selections and their union; only the first minute is wanted."""
    one = _tapped(job, sensor(job, "one").where(f"occupancy > {CROWDED}"), "SELECT (occupancy)")
    two = _tapped(job, sensor(job, "two").where(f"speed > {SLOW}"), "SELECT (speed)")
    return Question(one.union(two), [f"not [*, >= '{minute(1)}', *, *, *, *]"], "UNION")


def _highest(job: Job) -> Question:
    """Sensors with their places, the highest speed of each station by the minute; wanted is one, for seven minutes."""
    placed = _tapped(job, sensor(job).lookup(location(job), on="sensor_id"), "JOIN")
    grouped = _tapped(job, placed.window("1 min"), "BUCKET").group_by("window_start", "freeway_id", "milepost")
    said = [f"not [>= '{minute(7)}', *, *, *]", "not [*, > 1, *, *]", "not [*, *, > 101, *]"]
    return Question(grouped.agg(top="max(speed)"), said, "MAX")


def _averages(job: Job) -> Question:
    """The average of the sensors beside that of the probes, by the minute; only two minutes are wanted."""
    both = []
    for stream, name in ((sensor(job), "sensor"), (probe(job), "probe")):
        grouped = _tapped(job, stream.window("1 min"), f"BUCKET ({name})").group_by("window_start")
        both.append(_tapped(job, grouped.agg(**{name: "avg(speed)"}), f"AVERAGE ({name})"))
    return Question(both[0].join(both[1], on="window_start"), [f"not [>= '{minute(2)}', *, *]"], "JOIN")


# --- flights ------------------------------------------------------------------------------------------------------


def flights(job: Job) -> Question:
    """Departures as they become known. A missing delay is estimated, expensively; who is more than an hour behind the
    latest scheduled departure is of no interest to anybody any more."""
    files = ps.stream("flights", FLIGHTS, time="sched").read_parquet(f"{job['data']}/flights", order="name")
    known = files.disorder("1 day").ends().with_columns(imputed="false")
    there, missing = known.where("dep_delay IS NOT NULL"), known.where("dep_delay IS NULL")
    keeps = ["sched", "known", "origin", "dest", "carrier", "flight"]
    nearest = Nearest(Ledger(job["ledger"]), f"{job['data']}/all.parquet")
    mended = missing.impute(nearest, budget=job["budget"], keeps=keeps)
    together = there.pace(mended, on="sched", bound=OLD)
    if job["mode"] == "silent":
        together = _switched(together, exploit=True, propagate=False)
    return Question(together)
