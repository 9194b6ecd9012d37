"""Columnar files are read only as far as a query needs them: every operator must do with what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.portal.testing import local_session

SCHEMA = "ts int, k int, v int, note string"
QUERIES = {
    "window, select": "a.window(5).select('window_start', 'k')",
    "window, where, aggregate": "a.window(5).where('k = 1').group_by('window_start').agg(n='count(*)')",
    "window, instrument": "a.window(5).instrument('not [1, 1, 1, *, *]').group_by('k').agg(n='max(v)')",
    "sliding": "a.window(6, slide=3).select('window_start', 'v')",
    "window, semi": "a.window(5).join(b.window(5), ['window_start', 'k'], 'semi').select('ts', 'k')",
    "window, anti": "a.window(5).join(b.window(5).where('v > 3'), ['window_start', 'k'], 'anti').select('ts')",
    "window, inner": "a.window(5).rename(v='w').join(b.window(5), ['window_start', 'k']).select('w', 'v')",
    "union": "a.union(b).select('k')",
    "pace": "a.pace(b, on='ts', bound=100).select('k')",
    "distinct": "a.select('k', 'v').distinct().select('k')",
    "order": "a.order_by('v').select('k')",
    "top": "a.top(2, by='v desc', per=['k']).select('v')",
    "limit": "a.limit(4).select('k')",
    "impute": "a.impute(same, keeps=['ts', 'k']).select('k')",
    "map": "a.map(same, keeps=['ts', 'k']).select('k')",
    "nothing but a count": "a.agg(n='count(*)')",
}


def same(rows: pa.Table) -> pa.Table:
    return rows


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_a_query_over_parquet_gives_what_it_gives_over_json(query: str, tmp_path: Path) -> None:
    rows = [{"ts": t, "k": t % 3, "v": (t * 7) % 11, "note": f"n{t % 2}"} for t in range(12)]
    found = {}
    for kind in ("parquet", "json"):
        streams = {}
        for name, some in (("a", rows), ("b", rows[3:])):
            folder = tmp_path / kind / name
            folder.mkdir(parents=True)
            table = pa.Table.from_pylist(some).cast(ps.Schema.parse(SCHEMA, time="ts").arrow)
            if kind == "parquet":
                pq.write_table(table, folder / "0.parquet")
            else:
                (folder / "0.json").write_text("".join(f"{json.dumps(r)}\n" for r in some))
            empty = ps.stream(name, SCHEMA, time="ts")
            read = empty.read_parquet if kind == "parquet" else empty.read_json
            streams[name] = read(str(folder)).disorder(0).ends()
        stream: ps.Stream = eval(query, {**streams, "same": same})
        out = stream.collect(spark=local_session())
        found[kind] = sorted(map(str, out.to_pylist()))
    assert found["parquet"] == found["json"] and found["json"]


#: Who speaks of an attribute that nobody else looks at, to an operator behind a source that does not take it up.
TOLD = {
    "an operator": ("s.feedback(exploit=False).where('k >= 0').instrument('not [*, *, 1, *]')", None),
    "an operator, of two that read": ("(s.where('k >= 0').instrument('not [*, *, 1, *]'), s)", None),
    "a client": ("s.feedback(exploit=False).where('k >= 0')", "select-1"),
    "a client, to a window": ("s.feedback(exploit=False).window(4).where('k >= 0')", "bucket-1"),
}


@pytest.mark.parametrize(("query", "to"), TOLD.values(), ids=TOLD.keys())
def test_guards_find_what_they_look_at(query: str, to: str | None, tmp_path: Path) -> None:
    for n in range(4):
        rows = [{"ts": t, "k": t % 2, "v": t % 3, "note": ""} for t in (2 * n, 2 * n + 1)]
        table = pa.Table.from_pylist(rows).cast(ps.Schema.parse(SCHEMA, time="ts").arrow)
        pq.write_table(table, tmp_path / f"{n}.parquet")
    s = ps.stream("s", SCHEMA, time="ts").read_parquet(str(tmp_path), order="name").disorder(0).ends()
    first, *others = found if isinstance(found := eval(query, {"s": s}), tuple) else (found,)
    stream = first.group_by("k").agg(n="count(*)")
    for other in others:
        stream = stream.join(other.group_by("k").agg(latest="max(ts)"), "k")
    runs: list[ps.Run] = []

    def talk(progress: ps.Progress) -> None:
        if to is not None and progress.epoch == 1:
            rest = len(runs[0].driver.feedback.nodes[to].operator.schema.names) - 3
            runs[0].feedback(f"not [*, *, 1{', *' * rest}]", to=to)

    target = ps.memory()
    settings = {"trigger": "available_now", "max_rows": 2, "overlap": False, "spark": local_session()}
    runs.append(stream.start(target, listener=talk, **settings))
    runs[0].wait()
    assert sum(r["n"] for r in target.rows()) < 8
    assert any(" dropped" in what for what in runs[0].saved)
