"""Whole runs of queries with tables, in this process: which epoch sees which version, also after a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.portal.testing import local_session
from penstock.reference.interpret import interpret
from penstock.reference.item import events


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrive(number: int, *rows: dict[str, Any]) -> None:
    file = Path("in") / f"{number:03}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    os.utime(file, (number, number))


def prices(number: int, *rows: tuple[Any, ...], header: str = "sku,price") -> None:
    Path("prices.csv").write_text("\n".join([header, *(",".join(map(str, r)) for r in rows), ""]))
    os.utime("prices.csv", (number, number))


ORDERS = ps.stream("orders", "ts int, item string, n int", time="ts").read_json("in").disorder(0)
PRICES = ps.table("prices", "sku string, price int", key="sku").read_csv("prices.csv")
VERSIONED = ps.table("prices", "sku string, price int, since int", key="sku", version="since").read_csv("prices.csv")


def run(query: ps.Stream, **settings: Any) -> tuple[list[dict[str, Any]], ps.Run]:
    target = ps.parquet("out")
    done = query.start(target, trigger="available_now", checkpoint="cp", spark=local_session(), **settings).wait()
    files = sorted(Path("out").glob("*.parquet"))
    import pyarrow.parquet as pq

    return [row for f in files for row in pq.read_table(f).to_pylist()], done


def test_events_see_the_table_of_their_epoch() -> None:
    query = ORDERS.lookup(PRICES, on="item", how="left").with_columns(cost="n * price")
    prices(1, ("a", 10))
    arrive(1, {"ts": 1, "item": "a", "n": 2}, {"ts": 1, "item": "b", "n": 1})
    run(query)
    prices(2, ("a", 11), ("b", 5))
    arrive(2, {"ts": 2, "item": "a", "n": 2}, {"ts": 2, "item": "b", "n": 1})
    found, _ = run(query)
    assert [(r["ts"], r["item"], r["cost"]) for r in found] == [(1, "a", 20), (1, "b", None), (2, "a", 22), (2, "b", 5)]


@pytest.mark.parametrize("point", ["planned", "scanned", "commit"])
def test_a_crashed_epoch_is_run_again_with_the_table_it_had(point: str) -> None:
    query = ORDERS.lookup(PRICES, on="item")
    prices(1, ("a", 10))
    arrive(1, {"ts": 1, "item": "a", "n": 1})

    def crash(reached: str) -> None:
        if reached == point:
            raise Crash(point)

    with hooked(crash), pytest.raises(BaseException):  # noqa: B017 - the plug is pulled
        run(query)
    prices(2, ("a", 99))
    arrive(2, {"ts": 2, "item": "a", "n": 1})
    found, _ = run(query)
    assert [(r["ts"], r["price"]) for r in found] == [(1, 10), (2, 99)]


def test_a_table_that_goes_bad_is_told_and_left_as_it_was() -> None:
    query = ORDERS.lookup(PRICES, on="item")
    prices(1, ("a", 10))
    arrive(1, {"ts": 1, "item": "a", "n": 1})
    run(query)
    prices(2, ("a", "dear"))
    arrive(2, {"ts": 2, "item": "a", "n": 1})
    found, done = run(query)
    assert [r["price"] for r in found] == [10, 10]
    assert any("does not fit" in w and "stays as it was" in w for w in done.warnings)


def test_a_table_that_is_bad_at_the_start_is_an_error() -> None:
    arrive(1, {"ts": 1, "item": "a", "n": 1})
    with pytest.raises(ps.PenstockError, match=r"table 'prices': path 'prices.csv' does not exist"):
        run(ORDERS.lookup(PRICES, on="item"))


def test_old_snapshots_go(monkeypatch: pytest.MonkeyPatch) -> None:
    query = ORDERS.lookup(PRICES, on="item")
    for number in range(1, 8):
        prices(number, ("a", number))
        arrive(number, {"ts": number, "item": "a", "n": 1})
        found, _ = run(query)
    assert [r["price"] for r in found] == list(range(1, 8))
    assert 1 < len(list(Path("cp/tables/prices").iterdir())) <= 5


def test_punctuation_passes_and_windows_close_behind_a_lookup() -> None:
    query = ORDERS.lookup(VERSIONED, on="item").window(10).group_by("item").agg(cost="sum(n * price)")
    rows = [("a", 10, 0), ("a", 20, 5), ("b", 1, 12)]
    prices(1, *rows, header="sku,price,since")
    stream = [{"ts": t, "item": k, "n": 1} for t, k in [(1, "a"), (4, "a"), (5, "a"), (9, "b"), (12, "b"), (25, "a")]]
    for number, event in enumerate(stream, start=1):
        arrive(number, event)
    found, _ = run(query, max_rows=1, buckets=2)
    table = [dict(zip(("sku", "price", "since"), r)) for r in rows]
    wanted = events(interpret(query.plan, {"orders": stream}, tables={"prices": table}).outputs)
    assert (
        found
        == wanted
        == [
            {"window_start": 0, "item": "a", "cost": 40},
            {"window_start": 10, "item": "b", "cost": 1},
        ]
    )


def test_a_lookup_behind_an_aggregate() -> None:
    counted = ORDERS.window(10).group_by("item").agg(n="count(*)")
    query = counted.lookup(PRICES, on="item", columns=["price"])
    prices(1, ("a", 10))
    arrive(1, {"ts": 1, "item": "a", "n": 1}, {"ts": 2, "item": "b", "n": 1}, {"ts": 30, "item": "a", "n": 1})
    found, _ = run(query)
    assert found == [{"window_start": 0, "item": "a", "n": 1, "price": 10}]


def test_a_result_that_is_taken_back_is_looked_up_with_its_weight() -> None:
    counted = ORDERS.ends().window(10).group_by("item").agg(n="count(*)")
    query = counted.lookup(PRICES, on="item").group_by("item").agg(cost="sum(n * price)")
    prices(1, ("a", 10), ("b", 5))
    for number, item in enumerate("aabab"):
        arrive(number, {"ts": number, "item": item, "n": 1})
    told = ps.memory()
    query.start(
        told, consistency=ps.Consistency.middle(), trigger="available_now", max_rows=1, spark=local_session()
    ).wait()
    assert sorted((r["item"], r["cost"]) for r in told.holding()) == [("a", 30), ("b", 10)]
    assert any(r["_weight"] < 0 for r in told.rows())
