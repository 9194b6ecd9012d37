"""`check_spark` against Spark itself: every query of the corpus is run, and the verdict compared with its state."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from spark_corpus import FILES, Case, Streams, corpus, write

from penstock.contract.report import Report
from penstock.errors import UserError
from penstock.spark_check.plan import SparkSource
from penstock.spark_check.query import check_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Runs at a time. A micro-batch of three rows is mostly waiting.
_TOGETHER = 4
#: A run takes seconds, but there are dozens, and on a busy machine each may take minutes.
_PATIENCE = 900

pytestmark = pytest.mark.timeout(_PATIENCE)


def _marked(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=() if case.quick else pytest.mark.fuzz)


CASES = corpus()


@pytest.fixture(scope="module")
def streams(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Streams:
    root = tmp_path_factory.mktemp("corpus")
    write(root)
    # A session of its own: the settings stay in here.
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.streaming.stateStore.minDeltasForSnapshot", "100")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return Streams(session, root)


@pytest.fixture(scope="module")
def runs(
    streams: Streams, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[int] | None]]]:
    """The runs of all cases that this session tests, several at a time."""
    wanted = [i.callspec.params["case"] for i in request.session.items if "runs" in getattr(i, "fixturenames", ())]  # type: ignore[attr-defined]
    wanted = [case for case in wanted if case.module is None or _installed(case.module)]
    places = {case.name: tmp_path_factory.mktemp("checkpoint") for case in wanted}
    with ThreadPoolExecutor(_TOGETHER) as pool:
        yield {case.name: pool.submit(run, streams, case, places[case.name]) for case in wanted}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def run(streams: Streams, case: Case, checkpoint: Path) -> list[int] | None:
    """The rows of state after every batch with data; None if Spark does not run the query."""
    from pyspark.errors import AnalysisException, StreamingQueryException

    session = streams.spark
    if case.conf:
        session = session.newSession()
        for key, value in (("spark.sql.shuffle.partitions", "1"), *case.conf):
            session.conf.set(key, value)
    df = case.build(Streams(session, streams.root))
    writer = df.writeStream.format("noop").outputMode(case.mode).option("checkpointLocation", str(checkpoint))
    try:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(_PATIENCE)
    except (AnalysisException, StreamingQueryException) as error:
        if _refusal(str(error)):
            return None
        raise
    assert not query.isActive
    batches = [p for p in query.recentProgress if p.numInputRows > 0]
    assert len(batches) == FILES
    return [sum(o.numRowsTotal for o in p.stateOperators) for p in batches]


def _refusal(message: str) -> bool:
    return any(
        said in message for said in ("not supported", "UNSUPPORTED", "correctness", "disallowed", "MULTIPLE_EVENT_TIME")
    )


def grows(rows: list[int]) -> bool:
    """All keys are new in every file: state that stays grows with each, state that goes is back where it was."""
    rising = all(later > earlier for earlier, later in zip(rows[-4:], rows[-3:]))
    settled = rows[-1] <= max(rows[:4])
    assert rising != settled, rows
    return rising


def verdict(report: Report) -> str:
    if any("Spark refuses" in why for f in report.findings for why in f.why):
        return "refused"
    if not report.safe:
        return "unbounded"
    return "depends" if any(f.state == "as the data says" for f in report.findings) else "bounded"


def test_the_corpus_is_large_and_quick_enough() -> None:
    assert len({c.name for c in CASES}) == len(CASES) >= 60
    assert sum(c.quick for c in CASES) >= 30


@pytest.mark.parametrize("case", [_marked(c) for c in CASES])
def test_the_verdict_agrees_with_the_state_of_the_run(
    case: Case, streams: Streams, runs: dict[str, Future[list[int] | None]]
) -> None:
    report = check_spark(case.build(streams), case.mode)
    assert verdict(report) == case.says, str(report)
    if case.module is not None:
        pytest.importorskip(case.module)
    rows = runs[case.name].result()
    assert (rows is None) == (case.says == "refused"), rows
    if rows is not None and case.says != "depends":
        assert grows(rows) == (case.says == "unbounded"), rows
    if case.says == "unbounded":
        assert report.culprit is not None
        assert report.culprit.needs, "an unbounded operator without advice"


def test_the_inner_join_without_a_watermark_is_refused_with_the_fix(streams: Streams) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    report = check_spark(streams.l.join(streams.r, F.expr("k = rk")))
    assert not report
    text = str(report)
    assert "join on k = rk" in text
    for line in (
        '.withWatermark("ts", "10 minutes") on clicks',
        '.withWatermark("rts", "10 minutes") on views',
        "AND rts BETWEEN ts AND ts + INTERVAL 1 HOUR",
    ):
        assert line in text
    fixed = streams.lw.join(streams.rw, F.expr("k = rk AND rts BETWEEN ts AND ts + INTERVAL 1 HOUR"))
    assert check_spark(fixed)


def test_columns_keep_the_names_the_user_sees(streams: Streams) -> None:
    left = streams.lw.selectExpr("ts AS clicked", "k")
    right = streams.rw.selectExpr("rts AS seen", "rk AS k")
    # Nobody uses the times, so that Spark cuts them away before the join.
    report = check_spark(left.join(right, "k").select("k"))
    assert report.culprit is not None
    assert report.culprit.needs == ("AND seen BETWEEN clicked AND clicked + INTERVAL 1 HOUR",)


def test_expressions_are_shown_as_written(streams: Streams) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    report = check_spark(streams.lw.groupBy(F.date_trunc("hour", "ts")).count(), "update")
    assert report.culprit is not None
    assert report.culprit.operator == "groupBy(date_trunc('hour', ts))"
    assert report.culprit.needs == ('window("ts", "1 hour") among the keys',)


def test_lists_of_everything_are_not_constant(streams: Streams) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    for hoard in (F.collect_list("k"), F.collect_set("k"), F.median("v"), F.mode("v")):
        report = check_spark(streams.l.groupBy().agg(hoard), "complete")
        assert not report, str(report)
    assert check_spark(streams.l.groupBy().agg(F.sum("v"), F.approx_count_distinct("k")), "complete")


def test_sources_are_named_by_alias_or_by_spark(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    assert list(check_spark(rate.alias("ticks")).edges) == ["ticks"]
    assert list(check_spark(rate).edges) == ["rate"]


def test_a_self_join_is_read_as_two_sides(streams: Streams) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    one, other = streams.lw.alias("a"), streams.lw.alias("b")
    joined = one.join(other, F.expr("a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"))
    report = check_spark(joined)
    assert report
    assert len(report.findings[0].why) == 2


def test_the_checked_plan_is_left_alone(streams: Streams) -> None:
    # A session of its own: in the shared one, cases of the corpus may still be running.
    own = Streams(streams.spark.newSession(), streams.root)
    df: DataFrame = own.lw.dropDuplicates(["k"])
    before = df._jdf.queryExecution().analyzed().toString()
    check_spark(df)
    assert df._jdf.queryExecution().analyzed().toString() == before
    assert not own.spark.streams.active


def test_what_is_not_a_streaming_frame_is_refused(spark: SparkSession, streams: Streams) -> None:
    with pytest.raises(UserError, match="not a stream"):
        check_spark(spark.range(3))
    with pytest.raises(UserError, match="output mode 'appand'"):
        check_spark(streams.l, "appand")
    with pytest.raises(UserError, match="not a Spark DataFrame"):
        check_spark(SparkSource((), name="x"))  # type: ignore[arg-type]


def test_connect_is_told_that_a_classic_session_is_needed() -> None:
    # The Connect client needs packages that are not installed here; only the module of the class counts.
    remote = type("DataFrame", (), {"__module__": ModuleType("pyspark.sql.connect.dataframe").__name__})
    with pytest.raises(UserError, match="Spark Connect") as raised:
        check_spark(remote())
    assert "classic session" in str(raised.value)
