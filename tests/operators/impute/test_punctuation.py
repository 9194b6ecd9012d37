"""A promise passes a queue when no event that it speaks of waits any more, and no sooner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.operators.impute.kernel import QueueKernel
from penstock.operators.impute.operator import Impute
from penstock.operators.impute.punctuation import ASKED, WAITING, QueueBehaviour
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.punctuation import PunctuationSet
from penstock.pattern.schema import Schema
from penstock.plan.orders import Answer

SCHEMA = Schema.parse("t int, key string, n int, v double", time="t")
#: Fewer attributes, in another order.
MADE = Schema.parse("n int, key string, t int")
Row = dict[str, Any]


def make(rows: pa.Table) -> pa.Table:
    return rows.select(["n", "key", "t"])


IMPUTE = Impute((Source((), SCHEMA),), MADE, function=make, keeps=("t", "key", "n"))


def says(behaviour: QueueBehaviour, line: Sequence[Row]) -> None:
    """Ask a queue that holds these events."""
    rows = pa.Table.from_pylist([dict(row) for row in line], SCHEMA.arrow)
    behaviour.answered(QueueKernel(IMPUTE, "impute-1").taking(0).step([rows], [[]], behaviour.orders()).answers)


def told(behaviour: QueueBehaviour, *patterns: str) -> list[str]:
    return [str(p) for p in behaviour.receive([tuple(Pattern.parse(p, SCHEMA) for p in patterns)])]


def again(behaviour: QueueBehaviour) -> QueueBehaviour:
    """As it comes back from a checkpoint."""
    other = QueueBehaviour(IMPUTE)
    other.restore(json.loads(json.dumps(behaviour.to_json())))
    return other


def row(t: int | None, key: str | None = "a", n: int | None = 0) -> Row:
    return {"t": t, "key": key, "n": n, "v": 0.5}


def test_a_frontier_follows_the_queue() -> None:
    queue = QueueBehaviour(IMPUTE)
    assert told(queue, "[< 9, *, *, *]") == []
    says(queue, [row(5), row(7), row(20)])
    assert told(queue, "[< 30, *, *, *]") == ["[*, *, < 5]"]
    says(queue, [row(7), row(20)])
    queue = again(queue)
    assert told(queue) == ["[*, *, < 7]"]
    says(queue, [row(7), row(40)])
    assert told(queue) == []  # Said before.
    says(queue, [row(40)])
    assert told(queue) == ["[*, *, < 30]"]


def test_ended_values_go_out_one_by_one() -> None:
    queue = QueueBehaviour(IMPUTE)
    told(queue, "[*, {'a', 'b', 'c'}, *, *]", "[*, *, [4, 7], *]")
    says(queue, [row(1, "b", 5), row(2, "x", 9)])
    assert sorted(told(again(queue))) == ["[*, {'a', 'c'}, *]", "[{4, 6, 7}, *, *]"]
    says(queue, [row(2, "x", 9)])
    assert [p for p in told(queue) if "b" in p or "5" in p] == ["[*, 'b', *]", "[5, *, *]"]


def test_other_forms_wait_as_a_whole() -> None:
    queue = QueueBehaviour(IMPUTE)
    told(queue, "[< 5, 'a', *, *]", "[> 9, 'b', *, *]")
    says(queue, [row(3, "a")])
    assert told(queue) == ["[*, 'b', > 9]"]
    says(queue, [row(7, "a")])
    assert told(queue) == ["[*, 'a', < 5]"]


def test_what_the_function_does_not_keep_is_not_passed_on() -> None:
    queue = QueueBehaviour(IMPUTE)
    told(queue, "[*, *, *, > 3.0]", "[< 9, *, *, 1.0]")
    says(queue, [])
    assert told(queue) == [] and not queue.pending


def test_the_end_passes_when_everybody_has_had_a_turn() -> None:
    queue = QueueBehaviour(IMPUTE)
    told(queue, "[< 8, *, *, *]")
    assert told(queue, "[*, *, *, *]") == []
    says(queue, [row(9), row(4)])
    assert queue.pending and told(queue) == ["[*, *, < 4]"]
    says(queue, [row(9)])
    assert told(queue) == ["[*, *, < 8]"]  # Not lost, though the end says more.
    says(queue, [])
    queue = again(queue)
    assert queue.pending and told(queue) == ["[*, *, *]"] and not queue.pending


def test_there_is_an_epoch_to_come_while_anybody_waits() -> None:
    queue = QueueBehaviour(IMPUTE, asks=False)
    told(queue, "[< 8, *, *, *]")
    says(queue, [row(20)])
    assert again(queue).pending and told(queue) == []
    says(queue, [])
    assert not queue.pending


def test_nobody_waits_for_ever_behind_a_queue_that_is_never_empty() -> None:
    """Time for each key, told again and again, and always something of each key in the queue."""
    queue, line = QueueBehaviour(IMPUTE), list[Row]()
    passed = PunctuationSet(MADE)
    for t in range(60):
        line += [row(t, key) for key in "ab"]
        new = [Pattern.parse(p, SCHEMA) for p in (f"[<= {t}, 'a', *, *]", f"[<= {t}, 'b', *, *]")]
        passed = passed.add(*queue.receive([tuple(new)]))
        line = line[-8:]
        says(queue, line)
    assert passed.covers(Pattern.parse("[*, {'a', 'b'}, < 54]", MADE))


def test_it_asks_few_questions() -> None:
    queue = QueueBehaviour(IMPUTE)
    for t in range(500):
        told(queue, f"[< {t}, *, *, *]", f"[*, 'k{t}', *, *]", f"[< {t}, 'k{t}', *, *]")
    assert len(queue.orders().ask[0]) <= 3 + ASKED
    for t in range(500, 2 * WAITING):
        told(queue, f"[< {t}, 'a', *, *]", f"[< {t}, 'b', *, *]")
    assert len(queue.others) <= WAITING + 2


def test_times_have_their_unit() -> None:
    schema = Schema.parse("ts timestamp, d date", time="ts")
    operator = Impute((Source((), schema),), schema, function=lambda rows: rows, keeps=("ts", "d"))
    queue = QueueBehaviour(operator)
    until = [Pattern.parse(p, schema) for p in ("[< '2026-01-02', *]", "[*, <= '2026-01-05']")]
    queue.receive([tuple(until)])
    rows = pa.table({"ts": [datetime(2026, 1, 1, 5)], "d": [datetime(2026, 1, 4)]}).cast(schema.arrow)
    queue.answered(QueueKernel(operator, "impute-1").taking(0).step([rows], [[]], queue.orders()).answers)
    assert sorted(map(str, queue.receive([()]))) == ["[*, < '2026-01-04']", "[< '2026-01-01 05:00:00', *]"]


EVENTS = st.builds(
    row,
    st.none() | st.integers(0, 9),
    st.none() | st.sampled_from("abc"),
    st.none() | st.integers(0, 4),
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    t = draw(st.integers(0, 10))
    time = draw(st.sampled_from(("*", f"< {t}", f"<= {t}", f"> {t}", f"[{t}, {t + 2}]", str(t))))
    key = draw(st.sampled_from(("*", "*", "'a'", "{'a', 'b'}", "> 'b'")))
    number = draw(st.sampled_from(("*", "*", "*", "1", "{1, 3}", "[1, 3]", ">= 2")))
    value = draw(st.sampled_from(("*", "*", "*", "1.0")))
    return f"[{time}, {key}, {number}, {value}]"


@given(st.lists(st.tuples(st.lists(EVENTS, max_size=3), st.lists(patterns(), max_size=2), st.integers(0, 3))))
@settings(max_examples=80)
def test_passed_as_soon_as_true(epochs: list[tuple[list[Row], list[str], int]]) -> None:
    queue, line = QueueBehaviour(IMPUTE), list[Row]()
    promised, passed = PunctuationSet(SCHEMA), PunctuationSet(MADE)
    given_patterns: list[Pattern] = []
    for events, texts, turns in epochs:
        new = [Pattern.parse(t, SCHEMA) for t in texts]
        # What the queue takes now arrived before these promises, but after all others.
        line += [e for e in events if not promised.matches_row(e)]
        promised = promised.add(*new)
        given_patterns += new
        due = [p for p in given_patterns if p not in new and _kept(p) and not any(p.matches_row(e) for e in line)]
        passed = passed.add(*queue.receive([tuple(new)]))
        leaving, line = line[:turns], line[turns:]
        assert not [e for e in leaving if passed.matches_row(e)], "breaks its word"
        for p in due:
            assert passed.covers(p.onto(MADE, {n: n for n in p.restricted})), "is too slow"
        says(queue, line)
        queue = again(queue)
    passed = passed.add(*queue.receive([(Pattern.all(SCHEMA),)]))
    says(queue, [])
    assert passed.add(*queue.receive([()])).covers(Pattern.all(MADE))


def _kept(pattern: Pattern) -> bool:
    return set(pattern.restricted) <= set(IMPUTE.keeps)


def test_answers_are_taken_in_the_order_of_the_questions() -> None:
    queue = QueueBehaviour(IMPUTE)
    told(queue, "[*, 'a', *, *]", "[< 9, *, *, *]")
    asked = queue.orders().ask[0]
    answer = {"[*, *, *, *]": Answer(4), "[*, 'a', *, *]": Answer(0), "[< 9, *, *, *]": Answer(2, least=2)}
    queue.answered([[answer[str(p)] for p in asked]])
    assert sorted(told(queue)) == ["[*, 'a', *]", "[*, *, < 2]"]
