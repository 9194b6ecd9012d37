"""Whoever adds an operator is told what is missing: each place that decides by the kind of an operator knows all.

An operator that a place does not know is an error there, never a default: a check that takes it for one without state
would prove it safe.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

import penstock as ps
from penstock.analysis.bounds import bounds
from penstock.analysis.cascade import is_exact, respond
from penstock.analysis.check import check
from penstock.analysis.explain import coming, leaving
from penstock.analysis.judge import weigh
from penstock.analysis.probe import issues
from penstock.analysis.propagate import Propagation
from penstock.analysis.speculate import speculate
from penstock.builder.held import folded, settled
from penstock.builder.multiway import join
from penstock.contract.flow import Verdict
from penstock.engine.tables import prepare
from penstock.engine.tasks.columns import needed
from penstock.engine.tasks.pipeline import Pipeline
from penstock.errors import UnknownOperatorError, UserError
from penstock.operators.aggregate.monotone import is_never_negative
from penstock.operators.align.operator import Align
from penstock.operators.join.operator import Joined
from penstock.operators.shared.families import AtOnceSpec
from penstock.operators.shared.thinning import ThinningSpec
from penstock.operators.sink.operator import Sink
from penstock.operators.source.operator import Source
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import SYNC
from penstock.plan.arrival import heeds_order, order_matters
from penstock.plan.domain import domains
from penstock.plan.grid import grids
from penstock.plan.looked_at import looked_at
from penstock.plan.operator import Operator
from penstock.plan.plan import Plan
from penstock.plan.spec import InRoom, Spec, found_in, register, registered, spec_of, traits_of
from penstock.plan.upwards import comes_as_read, passes_at_once
from penstock.plan.window_behind import window_behind
from penstock.reference.domain import domains as reference_domains
from penstock.reference.domain import grid_of
from penstock.reference.interpret import Interpretation

SCHEMA = "ts int, k int, v int"


def same(rows: pa.Table) -> pa.Table:
    return rows


def same_state(events: pa.Table, state: pa.Table, over: pa.Table) -> tuple[pa.Table, pa.Table]:
    return events, state


def source(name: str) -> ps.Stream:
    return ps.stream(name, SCHEMA, time="ts").disorder(5).ends()


A, B, C = source("a"), source("b"), source("c")
#: Rows that hold for a time.
L, L2 = (ps.stream(n, SCHEMA, lifetime=("k", "v")).disorder(5).ends() for n in ("l", "l2"))
NAMES = ps.table("names", "k int, name string", key="k").read_csv("names.csv")


def at_once(stream: ps.Stream) -> ps.Stream:
    (operator,) = speculate([stream.operator], ps.Consistency.middle())
    return replace(stream, operator=operator)


#: Something small of each kind, as users write it.
MADE: dict[str, ps.Stream] = {
    "source": A,
    "select": A.where("k > 1"),
    "project": A.select("ts", "k", w="v + 1"),
    "map": A.map(same, keeps=["ts"]),
    "impute": A.impute(same, keeps=["ts"], budget=7),
    "process": A.process(same_state, "n int", by="k"),
    "union": A.union(B),
    "pace": A.pace(B, on="ts", bound=9),
    "instrument": A.instrument("not [*, 1, *]"),
    "bucket": A.window(10),
    "aggregate": A.group_by("k").agg(n="count(*)"),
    "aggregate of windows": A.window(10).group_by("k").agg(n="count(*)"),
    "aggregate of rows": A.window(rows=3).group_by("k").agg(n="count(*)"),
    "aggregate from the start": A.window(landmark=10).group_by("k").agg(n="count(*)"),
    "aggregate of sessions": A.window(session=10).group_by("k").agg(n="count(*)"),
    "aggregate of sessions at once": at_once(A.window(session=10).group_by("k").agg(n="count(*)")),
    "align": replace(A, operator=Align((A.operator,), A.schema, time="ts", slack=5, block=2)),
    "aggregate at once": at_once(A.window(10).group_by("k").agg(n="count(*)")),
    "aggregate of an aggregate at once": at_once(
        A.window(10).group_by("k").agg(n="count(*)").group_by("window_start").agg(most="max(n)")
    ),
    "top at once": at_once(A.top(2, by="v desc", per=["k"])),
    "join at once": at_once(A.join(B, "k", "left", within=5)),
    "join of an aggregate at once": at_once(A.group_by("k").agg(n="count(*)").join(B.select("k", "v"), "k", "full")),
    "distinct": A.distinct(),
    "orderby": A.order_by("ts"),
    "orderby with slack": A.order_by("ts", slack=3),
    "limit": A.limit(3),
    "top": A.top(2, by="v desc", per=["k"]),
    "lookup": A.lookup(NAMES, "k"),
    "join": A.join(B, "k", within=5),
    "join of rows": A.join(B, "k", rows=2),
    "changes": replace(L, operator=at_once(L).operator),
    "snapshot": L.snapshot().group_by("ts").agg(n="count(*)"),
    "join of lifetimes": L.join(L2, "ts"),
    "join of lifetimes at once": at_once(L.join(L2, "ts", where="ts > 0")),
    "lifetime": L.lifetime(length=5, every=2),
    "lifetime at once": at_once(L.deletes()),
    "snapshot at once": at_once(L.snapshot().agg(n="max(ts)")),
    "multijoin": join(A, B, C, on="k", within=5),
}
OPERATORS: dict[str, Operator] = {
    **{name: stream.operator for name, stream in MADE.items()},
    "latest": at_once(A.changes("v", key="k")).operator.inputs[0],
    "sink": Sink((A.operator,), A.schema),
    "settle": settled(MADE["aggregate at once"].operator, ("window_start", "k")),
    "fold": folded(MADE["aggregate at once"].operator, ("window_start", "k"), ("window_start",)),
}


def kinds(of: type[Operator] = Operator) -> Iterator[type[Operator]]:
    """All kinds of operators that Penstock has; what tests make up and what kinds only share is not among them."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("penstock.operators.") and kind is not Joined:
            yield kind
        yield from kinds(kind)


def test_there_is_something_of_every_kind() -> None:
    assert {type(o) for o in OPERATORS.values()} == set(kinds())


@pytest.mark.parametrize("name", [n for n in MADE if n != "align"])
def test_texts_call_it_by_the_word_of_the_builder(name: str) -> None:
    word = OPERATORS[name].word
    assert callable(getattr(ps.Stream, word, None) or getattr(ps, word, None)), word


def test_what_cannot_take_back_is_named_as_it_was_written() -> None:
    with pytest.raises(UserError, match=r"^order_by\(\) cannot take back what it has told, but agg\(\) before it"):
        at_once(MADE["aggregate of windows"].order_by("n"))


def test_every_kind_is_registered_itself() -> None:
    """What is derived from a kind has answers of its own."""
    assert {s.operator for s in registered()} >= set(kinds())


def test_a_spec_that_lacks_something_is_refused_with_all_that_it_lacks() -> None:
    class Half(Spec[Shuffle]):
        operator = Shuffle

        def traits(self, operator: Shuffle) -> Any:
            return None

    with pytest.raises(UserError, match=r"operator 'shuffle' lacks lineage, facts, reads, computed, .*, example"):
        register(Half)  # type: ignore[arg-type]
    with pytest.raises(UnknownOperatorError):
        spec_of(Shuffle((A.operator,), A.schema))


def test_a_spec_whose_answer_stands_in_no_module_is_refused() -> None:
    class Elsewhere(type(spec_of(A.distinct().operator))):  # type: ignore[misc]
        judge = found_in("nowhere")

    with pytest.raises(UserError, match=r"operator 'distinct' lacks judge\."):
        register(Elsewhere())


def test_a_spec_that_lacks_what_its_family_asks_is_refused() -> None:
    class Half(ThinningSpec[Shuffle]):
        operator = Shuffle

    with pytest.raises(UserError, match=r"operator 'shuffle' lacks step, reference, example, looks_at\."):
        register(Half)  # type: ignore[arg-type]


def test_answers_that_stand_in_modules_take_what_they_are_asked() -> None:
    count = 0
    for kind in (type(s) for s in registered() if s.operator in set(kinds())):
        for question in (*vars(Spec), "rates"):
            answer = getattr(kind, question, None)
            if isinstance(answer, InRoom):
                asked = getattr(AtOnceSpec if question == "rates" else Spec, question)
                given = [MagicMock() for _ in range(len(inspect.signature(asked).parameters) - 1)]
                inspect.signature(answer.found()).bind(*(given if answer.given is None else answer.given(*given)))
                count += 1
    assert count > 100


# --- every place ------------------------------------------------------------------------------------------------------


def everything(operator: Operator) -> Pattern:
    return Pattern.all(operator.schema)


def first(operator: Operator) -> str:
    return operator.schema.names[0]


def some(operator: Operator) -> Pattern:
    return Pattern.parse(f"[< 3{', *' * (len(operator.schema) - 1)}]", operator.schema)


def propagated(operator: Operator) -> object:
    """One punctuation of each source, through a behaviour where there is one and by itself where there is none."""
    plan = Plan.of(operator)
    return Propagation(plan).run({n.id: [some(n.operator)] for n in plan.sources})


def ended(operator: Operator) -> Plan:
    return Plan.of(operator if isinstance(operator, Sink) else Sink((operator,), operator.schema))


def columns(operator: Operator) -> object:
    pipeline = Pipeline(ended(operator))
    return [needed(pipeline, node.id) for node in pipeline.plan.sources]


def run_by_task(operator: Operator) -> object:
    """Some rows of each source through the operator, without the careful way and with it."""
    plan = ended(operator)
    rows = pa.table({"ts": [1, 2, 3], "k": [1, 1, 2], "v": [4, 5, 6], SYNC: [1, 1, 2]}, schema=L.schema.arrow)
    table = pa.table({"k": [1, 2], "name": ["one", "two"]}, schema=NAMES.schema.arrow)
    pipeline = Pipeline(plan).in_epoch({"names": prepare(NAMES, table)})
    return [pipeline.flow(node.id, rows.select(node.operator.schema.names)) for node in plan.sources]


def interpreted(operator: Operator) -> object:
    plan = Plan.of(operator)
    rows = [{"ts": t, "k": t % 2, "v": t} for t in range(4)]
    run = Interpretation(
        plan, {n.operator.name: rows for n in plan.sources if isinstance(n.operator, Source)}, tables=TABLES
    )
    return list(run.steps())


TABLES = {"names": [{"k": 0, "name": "even"}]}

PLACES: dict[str, Callable[[Operator], object]] = {
    "judge": lambda o: weigh(Plan.of(o)),
    "check": lambda o: check(Plan.of(o)),
    "bounds": lambda o: bounds(Plan.of(o), epoch=10),
    "total": lambda o: spec_of(o).total(o, [5 for _ in o.inputs]),
    "total, not knowing": lambda o: spec_of(o).total(o, [None for _ in o.inputs]),
    "issues": lambda o: list(issues(Plan.of(o), _verdicts(o))),
    "coming": lambda o: coming(Plan.of(o)),
    "leaving": lambda o: leaving(Plan.of(o)),
    "heeds_order": heeds_order,
    "order_matters": lambda o: [order_matters(Plan.of(o), n.id) for n in Plan.of(o) if n.operator in o.inputs],
    "behaviour": lambda o: spec_of(o).behaviour(o, True),
    "traits": traits_of,
    "punctuation": propagated,
    "passes_at_once": passes_at_once,
    "comes_as_read": comes_as_read,
    "respond": lambda o: respond(o, some(o)),
    "respond to everything": lambda o: respond(o, everything(o)),
    "is_exact": lambda o: is_exact(o, some(o)),
    "domains": domains,
    "grids": grids,
    "is_never_negative": lambda o: [is_never_negative(o, n) for n in o.schema.names],
    "window_behind": lambda o: window_behind(o, first(o)),
    "held": lambda o: spec_of(o).held(o),
    "definition": lambda o: spec_of(o).definition(o),
    "looked_at": lambda o: looked_at(ended(o)),
    "columns": columns,
    "step": lambda o: spec_of(o).step(o, Plan.of(o).nodes[-1].id),
    "task": run_by_task,
    "reference": interpreted,
    "reference domains": reference_domains,
    "reference grids": lambda o: [grid_of(o, n) for n in o.schema.names],
}


def _verdicts(operator: Operator) -> dict[str, Verdict]:
    """What is offered below; of the operator itself nobody asks."""
    return weigh(Plan.of(*operator.inputs)) if operator.inputs else {}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_place_knows_every_operator(name: str, place: str) -> None:
    PLACES[place](OPERATORS[name])


# --- one that nobody knows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Shuffle(Operator):
    """Nobody was told of it."""


@pytest.mark.parametrize("place", [p for p in PLACES if p != "order_matters"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_what_nobody_knows_is_an_error_that_names_it(place: str, inputs: int) -> None:
    below = (A.operator, B.operator)[:inputs]
    with pytest.raises(UnknownOperatorError, match="Shuffle"):
        PLACES[place](Shuffle(below, A.schema))


def test_what_nobody_knows_cannot_tell_whether_it_needs_an_order() -> None:
    plan = Plan.of(Shuffle((A.operator.inputs or (_unordered(),)), A.schema))
    with pytest.raises(UnknownOperatorError, match="Shuffle"):
        order_matters(plan, plan.sources[0].id)


def _unordered() -> Operator:
    return replace(A.operator, promises=())
