"""Queries that could not run for ever are refused before anything starts, unless someone says why that is fine."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.checkpoint.storage import Storage
from penstock.engine.admission import INSISTED, admit, insisted
from penstock.engine.query import Queries
from penstock.engine.run import TriggerName
from penstock.engine.sink import Target
from penstock.errors import UserError
from penstock.portal.testing import local_session


@pytest.fixture
def rides(tmp_path: Path) -> ps.Stream:
    (tmp_path / "rides.csv").write_text("ts,trip\n2026-01-01 00:00:00,1\n2026-01-01 00:00:01,2\n")
    return ps.stream("rides", "ts timestamp, trip int", time="ts").read_csv(str(tmp_path / "rides.csv"))


def counted(stream: ps.Stream) -> ps.Stream:
    return stream.group_by("trip").agg(n="count(*)")


def refused(query: ps.Stream, **options: object) -> UserError:
    with pytest.raises(UserError) as error:
        query.start(ps.memory(), spark=local_session(), **options)  # type: ignore[arg-type]
    return error.value


def test_names_operator_edge_stream_and_fix(rides: ps.Stream) -> None:
    error = refused(counted(rides.disorder("5 s")))
    assert error.message.splitlines() == [
        "aggregate-1 (count(*) AS n by trip): state grows for ever, results are held back;",
        "  what arrives from source:rides: ts up to;",
        "  needs: rides: trip: each value",
    ]
    assert error.hint is not None
    assert 'declare rides = rides.punctuate(ps.Punctuate.after("trip", "1 h")), or insist' in error.hint
    assert 'allow_unbounded="' in error.hint and "--allow-unbounded" in error.hint and "query.check()" in error.hint


def test_names_both_edges_of_a_join(rides: ps.Stream) -> None:
    fares = ps.stream("fares", "ts timestamp, trip int, fare double", time="ts").disorder("1 s")
    error = refused(rides.join(fares, on="trip"), every="1 s")
    assert "join-1 (inner on trip)" in error.message
    assert "what arrives from source:rides: no punctuation; what arrives from source:fares: ts up to" in error.message
    assert error.hint is not None and "rides = " in error.hint and "fares = " in error.hint


def test_the_fix_that_is_offered_is_let_in(rides: ps.Stream) -> None:
    """What the hint says is written as it stands, and the same query starts."""
    fix = counted(rides.disorder("5 s")).check().fixes[0].short
    names: dict[str, object] = {"ps": ps, "rides": rides.disorder("5 s")}
    exec(fix, names)
    mended = names["rides"]
    assert isinstance(mended, ps.Stream)
    with counted(mended).start(ps.memory(), every="50 ms", spark=local_session()) as run:
        assert run.warnings == []


def test_counts_those_behind_the_first(rides: ps.Stream) -> None:
    error = refused(counted(rides).distinct())
    assert error.message.startswith("aggregate-1") and "(and 1 other operator)" in error.message


def test_results_that_never_come(rides: ps.Stream) -> None:
    """One group: the state is a row, but the only result would come at an end that never comes."""
    error = refused(rides.disorder("5 s").agg(n="count(*)"))
    assert "results are held back for ever" in error.message
    assert "declare" not in (error.hint or "") and "insist" in (error.hint or "")


def test_nothing_is_left_behind(rides: ps.Stream, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="aggregate-1"):
        counted(rides).start(ps.parquet(str(tmp_path / "out")), spark=local_session())
    assert not (tmp_path / "out").exists()


def test_insisting_is_remembered(rides: ps.Stream, tmp_path: Path) -> None:
    kept = str(tmp_path / "checkpoint")
    options = {"checkpoint": kept, "spark": local_session()}
    with counted(rides).start(ps.memory(), every="50 ms", allow_unbounded="ten trips in all", **options) as run:  # type: ignore[arg-type]
        (warning,) = run.warnings
    assert "aggregate-1 (count(*) AS n by trip)" in warning and "ten trips in all" in warning
    found = insisted(Storage.at(kept))
    assert found == {"reason": "ten trips in all", "operators": ["aggregate-1"]}
    # Having insisted once does not count for the next start, and a run that ends by itself does not forget it.
    assert "insist" in (refused(counted(rides), checkpoint=kept).hint or "")
    counted(rides).start(ps.memory(), trigger="available_now", **options).wait()  # type: ignore[arg-type]
    assert insisted(Storage.at(kept)) == found


def test_a_safe_query_needs_no_reason(rides: ps.Stream, tmp_path: Path) -> None:
    query = rides.disorder("5 s").window("1 min").agg(n="count(*)")
    with query.start(ps.memory(), checkpoint=str(tmp_path / "c"), spark=local_session(), allow_unbounded="why") as run:
        assert run.warnings == []
    assert not (tmp_path / "c" / INSISTED).exists()


@pytest.mark.parametrize("reason", [True, "", "  ", 1])
def test_a_reason_is_words(rides: ps.Stream, reason: object) -> None:
    assert "is not a reason" in refused(counted(rides), allow_unbounded=reason).message


@pytest.mark.parametrize("trigger", ["once", "available_now"])
def test_bounded_runs_are_only_warned(rides: ps.Stream, trigger: TriggerName) -> None:
    run = counted(rides).start(ps.memory(), trigger=trigger, spark=local_session()).wait()
    assert run.warnings == [
        "aggregate-1 (count(*) AS n by trip): results wait for a later run; "
        "if there is no more to come, let rides say .ends()"
    ]
    said = counted(rides.ends()).start(ps.memory(), trigger=trigger, spark=local_session()).wait()
    assert said.warnings == []


def test_collect_is_bounded(rides: ps.Stream) -> None:
    assert counted(rides).collect(spark=local_session()).num_rows == 0
    assert counted(rides.ends()).collect(spark=local_session()).num_rows == 2


def test_an_end_does_not_help_for_ever(rides: ps.Stream) -> None:
    """`ends()` speaks of bounded runs; while a stream goes on there is no end."""
    assert "aggregate-1" in refused(counted(rides.ends())).message


def test_only_the_silent_streams_are_named(rides: ps.Stream) -> None:
    fares = ps.stream("fares", "ts timestamp, trip int, fare double", time="ts").ends()
    (warning,) = admit(rides.join(fares, on="trip").plan, bounded=True).warnings
    assert "state stays for a later run" in warning and warning.endswith("let rides say .ends()")


def test_a_table_that_is_kept_is_no_matter_of_what_streams_declare(tmp_path: Path) -> None:
    cars = ps.stream("cars", "ts timestamp, lane int", time="ts").read_json(str(tmp_path)).disorder("1 min")
    counts = cars.window("1 h").agg(n="count(*)")

    def warnings(sink: Target) -> tuple[str, ...]:
        return admit(Queries.of([counts.to(sink)]).at(ps.Consistency.middle()).plan, bounded=False).warnings

    (warning,) = warnings(ps.parquet("out", changes="fold"))
    assert warning.startswith("fold-1: the table itself is kept") and "partition_by=" in warning
    assert warnings(ps.parquet("out", changes="fold", partition_by=["window_start"])) == ()
    counts = counts.with_columns(day="CAST(window_start AS date)")
    (warning,) = warnings(ps.parquet("out", changes="fold", partition_by=["day"]))
    assert "no punctuation on `day` says when a folder is final" in warning


def test_what_the_data_says_is_let_in_with_a_word(rides: ps.Stream) -> None:
    (warning,) = admit(counted(rides.punctuated()).plan, bounded=False).warnings
    assert warning.startswith("aggregate-1: state is released as the data says") and ".scheme(" in warning
    assert admit(counted(rides.punctuated().scheme(trip="value")).plan, bounded=False).warnings == ()
    assert admit(counted(rides.punctuated().ends()).plan, bounded=True).warnings == ()
    assert "aggregate-1" in refused(counted(rides.punctuated().scheme(ts="up to"))).message


def test_check_reads_nothing(tmp_path: Path) -> None:
    nowhere = ps.stream("s", "ts timestamp, k int", time="ts").read_parquet(str(tmp_path / "not-there"))
    report = nowhere.disorder("1 s").distinct().check()
    assert report and report.safe and report.culprit is None and report.fixes == ()


def test_check_of_a_bounded_run(rides: ps.Stream) -> None:
    assert counted(rides.ends()).check(bounded=True)
    assert not counted(rides.ends()).check()
    assert counted(rides).check(bounded=True).fixes[0].declaration == "rides = rides.ends()"
