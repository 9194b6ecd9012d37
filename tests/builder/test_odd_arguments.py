"""Whatever a call of the builder is given, it makes a stream of it or says what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import penstock as ps
from penstock.engine.spark import session
from penstock.errors import PenstockError, UserError

Call = Callable[[Any], object]


def stream(name: str = "s") -> ps.Stream:
    declared = ps.stream(name, "ts timestamp, day date, n int, v double, k string, b boolean", time="ts")
    return declared.read_parquet("in")


S, OTHER, NUMBERS = stream(), stream("other"), ps.stream("numbers", "t int, k string", time="t").read_parquet("in")
TABLE = ps.table("prices", "k string, price double, since timestamp", key="k")

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**70, 1.5, math.nan, math.inf, Decimal("1.5"), "", " ", "\0", "\ud800", "n\ud800",
    "'", "`", "(", "[", "n", "ts", "nothing", "1 month", "-1 s", "x" * 10_000, b"n", [], ["n"], [None], ["n", 1], [[]],
    (), ("n",), (1, 2, 3), {}, {"n": None}, {"n": "m"}, {1: 2}, {None: "n"}, set(), {"n"}, object(), int, len, ps,
    lambda: 1, S, TABLE, S.schema, ps.Window.tumbling("1 s"), ps.memory(), date(2026, 1, 1), datetime(2026, 1, 1),
    timedelta(seconds=1), timedelta.max, timedelta(days=-1), iter(()), Exception("x"), pa.table({"n": [1]}), ...,
]  # fmt: skip

CALLS: dict[str, Call] = {
    "where": lambda x: S.where(x),
    "filter": lambda x: S.filter(x),
    "select": lambda x: S.select(x),
    "select computed": lambda x: S.select("ts", m=x),
    "with_columns": lambda x: S.with_columns(m=x),
    "drop": lambda x: S.drop(x),
    "rename": lambda x: S.rename(x),
    "rename to": lambda x: S.rename(n=x),
    "map": lambda x: S.map(x),
    "map schema": lambda x: S.map(len, x),
    "map keeps": lambda x: S.map(len, keeps=x),
    "map time": lambda x: S.map(len, "ts timestamp", time=x),
    "impute": lambda x: S.impute(x),
    "impute schema": lambda x: S.impute(len, x),
    "impute budget": lambda x: S.impute(len, budget=x),
    "impute where": lambda x: S.impute(len, where=x),
    "union": lambda x: S.union(x),
    "merge": lambda x: S.merge(x),
    "merge by": lambda x: S.merge(OTHER, by=x),
    "pace": lambda x: S.pace(x, bound="1 s"),
    "pace bound": lambda x: S.pace(OTHER, bound=x),
    "pace on": lambda x: S.pace(OTHER, bound="1 s", on=x),
    "join": lambda x: S.join(x, "k"),
    "join on": lambda x: S.join(OTHER, x),
    "join how": lambda x: S.join(OTHER, "k", x),
    "join within": lambda x: S.join(OTHER, "k", within=x),
    "join within two": lambda x: S.join(OTHER, "k", within=(x, "1 s")),
    "join between": lambda x: S.join(OTHER, "k", between=x),
    "join between two": lambda x: S.join(OTHER, "k", between=(x, x)),
    "join rows": lambda x: S.join(OTHER, "k", rows=x),
    "join rows two": lambda x: S.join(OTHER, "k", rows=(1, x)),
    "join where": lambda x: S.join(OTHER, "k", where=x),
    "join times": lambda x: S.join(OTHER, "k", within="1 s", times=x),
    "join times two": lambda x: S.join(OTHER, "k", within="1 s", times=("ts", x)),
    "join suffix": lambda x: S.join(OTHER, "k", suffix=x),
    "join thrifty": lambda x: S.join(OTHER, "k", thrifty=x),
    "join impatient": lambda x: S.join(OTHER, "k", impatient=x),
    "many joined": lambda x: ps.join(S, OTHER, on=x),
    "many": lambda x: ps.join(S, x, on="k"),
    "many more": lambda x: ps.join([S, OTHER, x], on="k"),
    "intersect": lambda x: S.intersect(x),
    "difference": lambda x: S.difference(x),
    "order_by": lambda x: S.order_by(x),
    "order_by slack": lambda x: S.order_by("ts", slack=x),
    "lookup": lambda x: S.lookup(x, "k"),
    "lookup on": lambda x: S.lookup(TABLE, x),
    "lookup how": lambda x: S.lookup(TABLE, "k", x),
    "lookup as_of": lambda x: S.lookup(TABLE, "k", as_of=x),
    "lookup columns": lambda x: S.lookup(TABLE, "k", columns=x),
    "lookup suffix": lambda x: S.lookup(TABLE, "k", suffix=x),
    "window": lambda x: S.window(x),
    "window slide": lambda x: S.window("1 min", slide=x),
    "window on": lambda x: S.window("1 min", on=x),
    "window origin": lambda x: S.window("1 min", origin=x),
    "window granularity": lambda x: S.window("1 min", granularity=x),
    "window rows": lambda x: S.window(rows=x),
    "window slide_rows": lambda x: S.window(rows=10, slide_rows=x),
    "window landmark": lambda x: S.window(landmark=x),
    "window of numbers": lambda x: NUMBERS.window(x),
    "window of days": lambda x: S.window(x, on="day"),
    "Window.tumbling": lambda x: S.window(ps.Window.tumbling(x)),
    "Window.count": lambda x: S.window(ps.Window.count(x)),
    "group_by": lambda x: S.group_by(x).agg(n="count(*)"),
    "agg": lambda x: S.group_by("k").agg(m=x),
    "limit": lambda x: S.limit(x),
    "top": lambda x: S.top(x, "n"),
    "top by": lambda x: S.top(3, x),
    "top per": lambda x: S.top(3, "n", x),
    "instrument": lambda x: S.instrument(x),
    "instrument every": lambda x: S.instrument("not [*, *, *, *, *, *]", every=x),
    "feedback": lambda x: S.feedback(exploit=x),
    "explain": lambda x: S.explain(x),
    "read_parquet": lambda x: S.read_parquet(x),
    "read_csv": lambda x: S.read_csv(x),
    "read_csv delimiter": lambda x: S.read_csv("in", delimiter=x),
    "read_csv header": lambda x: S.read_csv("in", header=x),
    "read_csv null": lambda x: S.read_csv("in", null=x),
    "read_json": lambda x: S.read_json(x),
    "read order": lambda x: S.read_parquet("in", order=x),
    "read partitions": lambda x: S.read_parquet("in", partitions=x),
    "read settle": lambda x: S.read_parquet("in", settle=x),
    "read wait": lambda x: S.read_parquet("in", wait=x),
    "read on_unreadable": lambda x: S.read_parquet("in", on_unreadable=x),
    "disorder": lambda x: S.disorder(x),
    "disorder on": lambda x: S.disorder("1 s", on=x),
    "disorder of numbers": lambda x: NUMBERS.disorder(x),
    "Measured": lambda x: S.disorder(ps.Measured(at_most=x)),
    "Measured quantile": lambda x: S.disorder(ps.Measured(quantile=x, at_most="1 s")),
    "Measured at_least": lambda x: S.disorder(ps.Measured(at_most="1 s", at_least=x)),
    "Measured warm_up": lambda x: S.disorder(ps.Measured(at_most="1 s", warm_up=x)),
    "monitor_disorder": lambda x: S.monitor_disorder(on=x),
    "punctuate": lambda x: S.punctuate(x),
    "Punctuate.after": lambda x: S.punctuate(ps.Punctuate.after(x, "1 s")),
    "Punctuate.after gap": lambda x: S.punctuate(ps.Punctuate.after("k", x)),
    "Punctuate.after on": lambda x: S.punctuate(ps.Punctuate.after("k", "1 s", on=x)),
    "Punctuate.after remember": lambda x: S.punctuate(ps.Punctuate.after("k", "1 s", remember=x)),
    "Punctuate.every": lambda x: S.punctuate(ps.Punctuate.every(x)),
    "Punctuate.once": lambda x: S.punctuate(ps.Punctuate.once(x)),
    "Punctuate.sorted_by": lambda x: S.punctuate(ps.Punctuate.sorted_by(x)),
    "Punctuate.values": lambda x: S.punctuate(ps.Punctuate.values("k", x)),
    "Punctuate.values of": lambda x: S.punctuate(ps.Punctuate.values(x, ["a"])),
    "Punctuate.within_rows": lambda x: S.punctuate(ps.Punctuate.within_rows(x)),
    "punctuated": lambda x: S.punctuated(x),
    "punctuated companion": lambda x: S.punctuated(companion=x),
    "punctuated remember": lambda x: S.punctuated(remember=x),
    "scheme": lambda x: S.punctuated().scheme(x),
    "scheme classes": lambda x: S.punctuated().scheme(k=x),
    "complete_when": lambda x: S.complete_when(x, on="k"),
    "complete_when on": lambda x: S.complete_when(["a"], on=x),
    "complete_when past": lambda x: S.complete_when(["a"], on="k", past=x),
    "complete_when slack": lambda x: S.complete_when(["a"], on="k", slack=x),
    "bounds": lambda x: S.bounds(x, 1),
    "bounds low": lambda x: S.bounds("n", x),
    "bounds high": lambda x: S.bounds("v", 1, x),
    "expect rate": lambda x: S.expect(rate=x),
    "expect lifetime": lambda x: S.expect(lifetime=x),
    "expect lifetime of": lambda x: S.expect(lifetime={"k": x}),
    "expect keys": lambda x: S.expect(keys=x),
    "expect keys of": lambda x: S.expect(keys={"k": x}),
    "expect lag": lambda x: S.expect(lag=x),
    "on_violation": lambda x: S.on_violation(x),
    "stream": lambda x: ps.stream(x, "n int"),
    "stream schema": lambda x: ps.stream("s", x),
    "stream time": lambda x: ps.stream("s", "n int, ts timestamp", time=x),
    "table": lambda x: ps.table(x, "k string", key="k"),
    "table schema": lambda x: ps.table("t", x, key="k"),
    "table key": lambda x: ps.table("t", "k string, since timestamp", key=x),
    "table version": lambda x: ps.table("t", "k string, since timestamp", key="k", version=x),
    "table until": lambda x: ps.table("t", "k string, a timestamp, b timestamp", key="k", version="a", until=x),
    "table read": lambda x: TABLE.read_csv(x),
    "table from_spark": lambda x: TABLE.from_spark(x),
    "table from_spark every": lambda x: TABLE.from_spark(lambda: None, every=x),
    "from_spark": lambda x: ps.from_spark(x),
    "generate": lambda x: ps.generate(x),
    "generate rate": lambda x: ps.generate(rate=x),
    "generate rows": lambda x: ps.generate(rows=x),
    "generate seed": lambda x: ps.generate(seed=x),
    "generate start": lambda x: ps.generate(start=x),
    "generate disorder": lambda x: ps.generate(disorder=x),
    "generate partitions": lambda x: ps.generate(partitions=x),
    "generate columns": lambda x: ps.generate(columns=x),
    "generate column": lambda x: ps.generate(columns={"a": x}),
    "generate column's": lambda x: ps.generate(columns={"a": ("key", x)}),
    "generate punctuate": lambda x: ps.generate(punctuate=x),
    "generate punctuate every": lambda x: ps.generate(punctuate={"key": x}),
    "parquet": lambda x: ps.parquet(x),
    "json_lines": lambda x: ps.json_lines(x),
    "deliver": lambda x: ps.deliver(x),
    "deliver form": lambda x: ps.deliver(len, form=x),
    "console": lambda x: ps.console(x),
    "Pattern.parse": lambda x: ps.Pattern.parse(x, S.schema),
    "Schema.parse": lambda x: ps.Schema.parse(x),
    "Trigger.every": lambda x: ps.Trigger.every(x),
    "consumer": lambda x: ps.consumer(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_taken_or_refused_with_words(name: str) -> None:
    wrong = []
    for value in ODD:
        try:
            CALLS[name](value)
        except PenstockError as error:
            wrong += [f"{value!r:.60} is answered at length"] if len(str(error)) > 3_000 else []
        except Exception as error:
            wrong.append(f"{value!r:.60}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join([name, *wrong])


STARTS: dict[str, Call] = {
    "sink": lambda x: S.start(x),
    "trigger": lambda x: S.start(ps.memory(), trigger=x, master="nothing"),
    "every": lambda x: S.start(ps.memory(), every=x, master="nothing"),
    "checkpoint": lambda x: S.start(ps.memory(), checkpoint=x, master="nothing"),
    "dead_letters": lambda x: S.start(ps.memory(), dead_letters=x, master="nothing"),
    "spark": lambda x: S.start(ps.memory(), spark=x, master="nothing"),
    "master": lambda x: S.start(ps.memory(), master=x if x is not None else "nothing"),
    "listener": lambda x: S.start(ps.memory(), listener=x, master="nothing"),
    "allow_unbounded": lambda x: S.start(ps.memory(), allow_unbounded=x, master="nothing"),
    "feedback": lambda x: S.start(ps.memory(), feedback=x, master="nothing"),
    **{
        setting: lambda x, setting=setting: S.start(ps.memory(), **{setting: x}, master="nothing")  # type: ignore[misc]
        for setting in ("max_rows", "max_bytes", "buckets", "memory", "overlap", "attempts", "nothing")
    },
}


@pytest.mark.parametrize("name", STARTS)
def test_an_odd_argument_of_start_is_refused_with_words(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them gets as far as Spark: there is no master of that name, and what may pass meets no Spark at all."""

    def none(*_: object, **__: object) -> NoReturn:
        raise UserError("no Spark in this test")

    real = session.spark_session
    monkeypatch.setattr(session, "spark_session", lambda master=None, **o: (real if master else none)(master, **o))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    wrong = []
    for value in ODD:
        if callable(value) and name in ("spark", "listener"):
            continue
        try:
            STARTS[name](value)
        except PenstockError as error:
            wrong += [f"{value!r:.60} is answered at length"] if len(str(error)) > 3_000 else []
        except Exception as error:
            wrong.append(f"{value!r:.60}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join([name, *wrong])


def test_several_sinks_are_told_how_to() -> None:
    with pytest.raises(ps.UserError, match=r"one sink, not 2.*ps.start"):
        S.start([ps.memory(), ps.console()])  # type: ignore[arg-type]


def test_a_call_that_checks_itself_keeps_its_own_words() -> None:
    with pytest.raises(ps.UserError, match=r"None is not .*speed > 40"):
        S.where(None)  # type: ignore[arg-type]
    with pytest.raises(ps.UserError, match="'b' is not a function"):
        S.map("b")  # type: ignore[arg-type]
    with pytest.raises(ps.UserError, match="None is not a path"):
        ps.parquet(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("settle", [None, "5", True, -1, float("nan"), float("inf")])
def test_settle_is_a_number_of_seconds(settle: Any) -> None:
    """Found when the stream is declared, not when files are looked at."""
    with pytest.raises(UserError, match=r"settle=.* is not a number of seconds\. Hint: write settle=5"):
        S.read_csv("in", settle=settle)
