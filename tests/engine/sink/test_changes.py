"""Results that are corrected, in the form in which a sink takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import UserError
from penstock.kernels.weights import pairs
from penstock.plan.weight import WEIGHT
from penstock.portal.testing import local_session


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows)


def counted(rows: int = 60) -> ps.Stream:
    """Windows of four seconds over three keys; an epoch of seven events touches some of them again and again."""
    events = ps.generate(rate=2, rows=rows, disorder="3 s", columns={"key": ("key", 3)}).ends()
    return events.window("4 s").group_by("key").agg(n="count(*)")


def run(query: ps.Stream, sink: Any, **options: Any) -> ps.Run:
    options = {"trigger": "available_now", "max_rows": 7, "consistency": ps.Consistency.middle(), **options}
    return query.start(sink, spark=local_session(), **options).wait()


def final(query: ps.Stream) -> Counter[tuple[Any, ...]]:
    return bag(query.collect(spark=local_session()).to_pylist())


# --- in memory, on a terminal -----------------------------------------------------------------------------------------


def test_memory_tells_what_holds() -> None:
    target = ps.memory()
    run(counted(), target)
    assert any(row[WEIGHT] < 0 for row in target.rows())
    assert bag(target.holding()) == final(counted())


def test_of_results_that_are_not_corrected_all_hold() -> None:
    target = ps.memory()
    assert target.holding() == []
    run(counted(), target, consistency=None)
    assert target.holding() == target.rows() != []


def test_the_console_shows_signs(capsys: pytest.CaptureFixture[str]) -> None:
    run(counted(14), ps.console())
    told = capsys.readouterr().out
    assert "epoch 1: " in told and " changes" in told and WEIGHT not in told
    assert "│ + " in told and "│ − " in told


# --- before and after -------------------------------------------------------------------------------------------------


class Keyed:
    """A table by its key, kept by somebody who is told before and after."""

    def __init__(self, *keys: str) -> None:
        self.keys, self.rows = keys, dict[tuple[Any, ...], Any]()
        self.corrected = 0

    def take(self, told: pa.Table, epoch: int) -> None:
        assert told.column_names == ["before", "after"]
        for change in told.to_pylist():
            before, after = change["before"], change["after"]
            assert before is not None or after is not None
            keys = {tuple(side[k] for k in self.keys) for side in (before, after) if side is not None}
            (key,) = keys
            assert self.rows.get(key) == before, "what it was told before"
            self.rows[key] = after
            self.corrected += before is not None and after is not None


def test_pairs_never_tear_a_correction_apart() -> None:
    keyed = Keyed("window_start", "key")
    run(counted(), ps.deliver(keyed.take, changes="pairs"))
    assert keyed.corrected > 5
    assert bag(keyed.rows.values()) == final(counted())


def test_pairs_are_found_behind_other_operators() -> None:
    query = counted().where("n <> 3").with_columns(twice="2 * n").rename(key="k")
    keyed = Keyed("window_start", "k")
    run(query, ps.deliver(keyed.take, changes="pairs"))
    assert bag(r for r in keyed.rows.values() if r is not None) == final(query)


def test_results_that_nothing_tells_apart_have_one_side() -> None:
    told: list[dict[str, Any]] = []
    run(counted().select("n"), ps.deliver(lambda rows, epoch: told.extend(rows.to_pylist()), changes="pairs"))
    assert all((r["before"] is None) != (r["after"] is None) for r in told)
    assert {r["before"] is None for r in told} == {True, False}


def test_what_is_not_corrected_has_no_before() -> None:
    keyed = Keyed("window_start", "key")
    run(counted(), ps.deliver(keyed.take, changes="pairs"), consistency=None)
    assert keyed.corrected == 0 and bag(keyed.rows.values()) == final(counted())


ROWS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2), st.integers(-2, 2)), max_size=8)


@given(ROWS, st.sampled_from([None, (), ("k",), ("k", "n")]))
def test_pairs_say_what_the_changes_say(rows: list[tuple[str | None, int, int]], keys: tuple[str, ...] | None) -> None:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    types = (pa.string(), pa.int32(), pa.int64())
    table = pa.table({n: pa.array(c, t) for n, c, t in zip(("k", "n", WEIGHT), columns, types, strict=True)})
    found = pairs(table, keys)
    assert found.schema.field("after").type == pa.struct([("k", pa.string()), ("n", pa.int32())])
    said: Counter[tuple[Any, ...]] = Counter()
    one_sided: dict[tuple[Any, ...], set[bool]] = {}
    for change in found.to_pylist():
        sides = [(w, s) for w, s in ((-1, change["before"]), (1, change["after"])) if s is not None]
        for weight, side in sides:
            said[side["k"], side["n"]] += weight
        if len(sides) == 1 and keys is not None:
            (weight, side) = sides[0]
            one_sided.setdefault(tuple(side[k] for k in keys), set()).add(weight > 0)
        assert len({tuple(s[k] for k in keys or ()) for _, s in sides}) == 1
    expected: Counter[tuple[Any, ...]] = Counter()
    for k, n, weight in rows:
        expected[k, n] += weight
    assert {r: w for r, w in said.items() if w} == {r: w for r, w in expected.items() if w}
    assert all(len(signs) == 1 for signs in one_sided.values()), "what could be paired is"


# --- what is not possible ---------------------------------------------------------------------------------------------


def test_a_form_that_no_sink_has_is_refused() -> None:
    def nobody(rows: Any, epoch: int) -> None: ...

    with pytest.raises(UserError, match=r"changes='x'\) is not possible.*'log' or 'pairs'"):
        ps.deliver(nobody, changes="x")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="needs form='arrow'"):
        ps.deliver(nobody, form="spark", changes="pairs")
