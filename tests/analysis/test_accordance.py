"""Accordances: the worked plans, the analysis against the enumeration of all choices, and its cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest
from accepting import ANY_FEEDBACK, NO_FEEDBACK, Feedback
from accordance import Accordance, accord, blocks, fits
from contracts import Contract
from disaccord import Edge, Node, Port, Refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.contract.template import Scheme

UP, EACH = Scheme.parse("[[a:+, b:-]]"), Scheme.parse("[[a:#, b:-]]")
Offerings = Mapping[Node, Sequence[Contract]]


def passing(*schemes: Scheme) -> list[Contract]:
    return [Contract((s,), (s,)) for s in schemes]


def enumerated(offerings: Offerings, edges: Sequence[Edge]) -> Iterator[dict[Node, Contract]]:
    """All consistent accordances, by going through all choices."""
    nodes = list(offerings)
    offered = [[c for c in offerings[n] if c.well_formed] for n in nodes]
    place = {n: i for i, n in enumerate(nodes)}
    good = [
        {
            (i, j)
            for i, s in enumerate(offered[place[e.source]])
            for j, t in enumerate(offered[place[e.target]])
            if fits(s, t, e)
        }
        for e in edges
    ]
    ends = [(place[e.source], place[e.target], pairs) for e, pairs in zip(edges, good, strict=True)]
    for choice in product(*(range(len(cs)) for cs in offered)):
        if all((choice[s], choice[t]) in pairs for s, t, pairs in ends):
            yield {n: offered[i][choice[i]] for i, n in enumerate(nodes)}


CHAIN = [Edge("C", "A"), Edge("A", "B")]


def test_the_chain_has_one_accordance() -> None:
    offerings = {"C": passing(UP | EACH, UP, EACH), "A": passing(UP, EACH), "B": passing(UP)}
    found = accord(offerings, CHAIN)
    assert isinstance(found, Accordance)
    assert found.witness == dict.fromkeys("CAB", Contract((UP,), (UP,)))
    assert found.reduced == dict.fromkeys("CAB", (Contract((UP,), (UP,)),))
    assert found.semijoins == 4
    assert list(enumerated(offerings, CHAIN)) == [found.witness]
    assert len(list(enumerated({**offerings, "B": passing(UP, EACH)}, CHAIN))) == 2


def test_a_refusal_names_the_first_operator_and_what_it_needs() -> None:
    found = accord({"C": passing(EACH, UP | EACH), "A": passing(EACH), "B": passing(UP)}, CHAIN)
    assert found == Refusal("B", CHAIN[1], (Port(EACH),), (Port(UP),))
    assert str(found) == "from A arrives {[[a:#, b:-]]}, but B needs {[[a:+, b:-]]}" and not found
    first = accord({"C": passing(EACH), "A": passing(UP), "B": passing(EACH)}, CHAIN)
    assert isinstance(first, Refusal) and (first.node, first.edge) == ("A", CHAIN[0])


def test_an_empty_offering_is_refused_and_so_is_one_that_keeps_feedback_for_ever() -> None:
    kept = Contract((EACH,), (EACH,), (UP,))
    assert accord({"C": [kept]}, []) == Refusal("C")
    assert "no well-formed contract" in str(accord({"C": []}, []))


def test_each_input_counts_and_earlier_ones_narrow_what_is_wanted_at_later_ones() -> None:
    join = [Contract((UP, UP), (UP,)), Contract((EACH, EACH), (EACH,))]
    edges = [Edge("l", "join", 0, 0), Edge("r", "join", 0, 1)]
    offerings = {"l": [Contract((), (UP,))], "r": [Contract((), (EACH,))], "join": join}
    assert accord(offerings, edges) == Refusal("join", edges[1], (Port(EACH),), (Port(UP),))


def test_consumers_of_one_output_must_agree() -> None:
    edges = [Edge("s", "x"), Edge("s", "y")]
    source = [Contract((), (UP,)), Contract((), (EACH,))]
    refused = accord({"s": source, "x": passing(UP), "y": passing(EACH)}, edges)
    assert isinstance(refused, Refusal) and refused.node == "s"
    assert isinstance(accord({"s": source, "x": passing(UP), "y": passing(EACH, UP)}, edges), Accordance)


def test_streams_that_part_and_meet_need_more_than_pairs() -> None:
    """Every edge can be satisfied, but not all at once: x passes as it is, y swaps, the join wants both alike."""
    source = [Contract((), (UP,)), Contract((), (EACH,))]
    swaps = [Contract((UP,), (EACH,)), Contract((EACH,), (UP,))]
    join = [Contract((UP, UP), (UP,)), Contract((EACH, EACH), (EACH,))]
    edges = [Edge("s", "x"), Edge("s", "y"), Edge("x", "join", 0, 0), Edge("y", "join", 0, 1)]
    offerings = {"s": source, "x": passing(UP, EACH), "y": swaps, "join": join}
    refused = accord(offerings, edges)
    assert isinstance(refused, Refusal) and len(refused.given) == 1 and ", with " in str(refused)
    assert isinstance(accord({**offerings, "y": [*swaps, *passing(EACH)]}, edges), Accordance)


def test_a_stream_joined_with_itself() -> None:
    join = [Contract((UP, EACH), (UP,))]
    edges = [Edge("s", "join", 0, 0), Edge("s", "join", 0, 1)]
    assert not accord({"s": [Contract((), (UP,)), Contract((), (EACH,))], "join": join}, edges)
    apart = [Edge("s", "join", 0, 0), Edge("s", "join", 1, 1)]
    assert accord({"s": [Contract((), (UP, EACH))], "join": join}, apart)


# A plan with feedback: sensor readings part into clean and dirty ones; the dirty ones are imputed, and a merge that
# bounds lateness tells upstream which of them come too late anyway.
P = Scheme.parse("[[time:+, id:-, speed:-]]")
PLAN: dict[Node, list[Contract]] = {
    "duplicate": [Contract((P,), (P, P), (ANY_FEEDBACK, ANY_FEEDBACK), (NO_FEEDBACK,))],
    "select1": [Contract((P,), (P,), (ANY_FEEDBACK,), (NO_FEEDBACK,))],
    "select2": [Contract((P,), (P,), (ANY_FEEDBACK,), (NO_FEEDBACK,))],
    "impute": [Contract((P,), (P,), (P,), (NO_FEEDBACK,))],
    "pace": [Contract((P, P), (P,), (NO_FEEDBACK,), (P, P))],
}
PLAN_EDGES = [
    *(Edge("duplicate", "select1", 0, 0), Edge("select1", "pace", 0, 0)),
    *(Edge("duplicate", "select2", 1, 0), Edge("select2", "impute"), Edge("impute", "pace", 0, 1)),
]


def test_the_plan_with_feedback_has_an_accordance() -> None:
    found = accord(PLAN, PLAN_EDGES)
    assert isinstance(found, Accordance) and found.witness == {n: cs[0] for n, cs in PLAN.items()}


@pytest.mark.parametrize(
    ("node", "changed"),
    [
        ("impute", {"feedback_in": (NO_FEEDBACK,)}),
        ("pace", {"feedback_out": (ANY_FEEDBACK, ANY_FEEDBACK)}),
        ("impute", {"outputs": (Scheme.parse("[[time:-, id:#, speed:-]]"),)}),
    ],
)
def test_the_plan_with_feedback_breaks_where_it_is_changed(node: str, changed: dict[str, tuple[Scheme, ...]]) -> None:
    mutated = {**PLAN, node: [replace(PLAN[node][0], **changed)]}  # type: ignore[arg-type]
    refused = accord(mutated, PLAN_EDGES)
    assert isinstance(refused, Refusal) and (refused.node, refused.edge) == ("pace", PLAN_EDGES[-1])


def test_a_plan_that_is_none() -> None:
    one = passing(UP)
    with pytest.raises(ValueError, match="cycle through a"):
        accord({"a": one, "b": one}, [Edge("a", "b"), Edge("b", "a")])
    with pytest.raises(ValueError, match="leads to b"):
        accord({"a": one}, [Edge("a", "b")])
    with pytest.raises(ValueError, match="two edges lead to input 0 of c"):
        accord(dict.fromkeys("abc", one), [Edge("a", "c"), Edge("b", "c")])
    with pytest.raises(ValueError, match="no port"):
        accord({"a": one, "b": one}, [Edge("a", "b", 1)])


SCHEMES = [UP, EACH, UP | EACH]
FEEDBACK: list[Feedback] = [NO_FEEDBACK, NO_FEEDBACK, NO_FEEDBACK, ANY_FEEDBACK, ANY_FEEDBACK, UP, EACH]


def random_plan(r: random.Random, *, extra: int, largest: int) -> tuple[dict[Node, list[Contract]], list[Edge]]:
    """A tree, its edges in any direction, and `extra` more edges, with offerings of up to three contracts.

    Half of those with cycles are tangled: each operator offers a contract and its contrary, so that every edge alone
    can be satisfied, and only the cycles say whether all can.
    """
    n = r.randint(2, largest)
    pairs = []
    for i in range(1, n):
        j = r.randrange(i)
        pairs.append((j, i) if r.random() < 0.6 else (i, j))
    order = _order(n, pairs)
    for _ in range(extra if n > 2 or r.random() < 0.2 else 0):
        i, j = sorted(r.sample(range(n), 2), key=order.index)
        pairs.append((i, j))
    inputs, outputs, edges = [0] * n, [0] * n, []
    for i, j in pairs:
        share = outputs[i] and r.random() < 0.5
        edges.append(Edge(i, j, r.randrange(outputs[i]) if share else outputs[i], inputs[j]))
        inputs[j] += 1
        outputs[i] += not share
    pool = SCHEMES[: r.randint(2, 3)]
    feedback = FEEDBACK if r.random() < 0.5 else FEEDBACK[:1]
    offerings: dict[Node, list[Contract]] = {}
    if extra and r.random() < 0.5:
        for i in range(n):
            ports = [[r.choice((0, 1)) for _ in range(inputs[i] + outputs[i])] for _ in range(r.choice((1, 1, 2)))]
            said = [[SCHEMES[p] for p in port] for port in (ports[0], [1 - p for p in ports[0]], *ports[1:])]
            offerings[i] = [Contract(tuple(p[: inputs[i]]), tuple(p[inputs[i] :])) for p in said]
        return offerings, edges
    for i in range(n):
        drawn = r.randint(1, 3) if r.random() < 0.98 else 0
        offerings[i] = [
            Contract(
                tuple(r.choice(pool) for _ in range(inputs[i])),
                tuple(r.choice(pool) for _ in range(outputs[i])),
                tuple(r.choice(feedback) for _ in range(outputs[i])),
                tuple(r.choice(feedback) for _ in range(inputs[i])),
            )
            for _ in range(drawn)
        ]
    return offerings, edges


def _order(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    left, order = set(range(n)), []
    while left:
        free = min(i for i in left if all(s not in left for s, t in pairs if t == i))
        left.remove(free)
        order.append(free)
    return order


def check(offerings: Offerings, edges: Sequence[Edge], *, tree: bool) -> bool:
    expected = list(enumerated(offerings, edges))
    found = accord(offerings, edges)
    if isinstance(found, Accordance):
        assert dict(found.witness) in expected
        for node, reduced in found.reduced.items():
            occurring = {a[node] for a in expected}
            assert set(reduced) == occurring if tree else set(reduced) >= occurring
        return True
    assert expected == []
    if found.edge is None:
        assert not any(c.well_formed for c in offerings[found.node])
    else:
        assert found.node in (found.edge.source, found.edge.target)
        assert found.arrives and found.wanted
        parallel = [e for e in edges if (e.source, e.target) == (found.edge.source, found.edge.target)]
        if len(parallel) == 1:
            pairs = product(found.arrives, found.wanted)
            ends = [
                (Contract((), (a.scheme,), (a.feedback,)), Contract((w.scheme,), (), (), (w.feedback,)))
                for a, w in pairs
            ]
            assert not any(fits(s, t, Edge(0, 1)) for s, t in ends)
    return False


@given(st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_on_trees_the_analysis_is_the_enumeration(r: random.Random) -> None:
    check(*random_plan(r, extra=0, largest=5), tree=True)


@given(st.randoms(use_true_random=False), st.integers(1, 3))
@settings(max_examples=200)
def test_where_streams_meet_again_the_analysis_is_the_enumeration(r: random.Random, extra: int) -> None:
    check(*random_plan(r, extra=extra, largest=5), tree=False)


@pytest.mark.fuzz
@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_fuzz(extra: int, tried: Callable[[str], None]) -> None:
    r, plans, ok = random.Random(4 + extra), 6_000, 0
    for _ in range(plans):
        ok += check(*random_plan(r, extra=extra, largest=6 + (extra > 1)), tree=extra == 0)
    assert 300 < ok < 5700  # Both answers are put to the test.
    tried(f"{plans:,} plans, {ok:,} accord")


@given(st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_the_refused_operator_is_the_first_that_cannot_run(r: random.Random) -> None:
    """Where streams only meet, everything upstream of it could run without it, and not with it."""
    n = r.randint(2, 6)
    inputs, edges = [0] * n, []
    for i in range(n - 1):
        j = r.randint(i + 1, n - 1)
        edges.append(Edge(i, j, 0, inputs[j]))
        inputs[j] += 1
    schemes = [[r.choice(SCHEMES) for _ in range(inputs[i] + 1)] for i in range(n) for _ in range(3)]
    offerings: dict[Node, list[Contract]] = {
        i: [Contract(tuple(s[1:]), (s[0],)) for s in schemes[3 * i : 3 * i + r.randint(1, 3)]] for i in range(n)
    }
    found = accord(offerings, edges)
    if isinstance(found, Accordance):
        assert found.semijoins == 2 * n - 2 or any(len(cs) > 1 for cs in found.reduced.values())
        return
    upstream = {found.node}
    for edge in reversed(edges):
        if edge.target in upstream:
            upstream.add(edge.source)
    part = {i: cs for i, cs in offerings.items() if i in upstream}
    before = {i: cs for i, cs in part.items() if i != found.node}
    assert not any(enumerated(part, [e for e in edges if e.source in part and e.target in part]))
    assert any(enumerated(before, [e for e in edges if e.source in before and e.target in before]))


def ladder(rungs: int, offered: int) -> tuple[dict[Node, list[Contract]], list[Edge]]:
    """Streams that part and meet again, rung by rung, and no operator that settles which scheme it is."""
    schemes = [Scheme.parse(f"[[a{i}:+]]") for i in range(offered)]
    offerings: dict[Node, list[Contract]] = {"source": [Contract((), (s,)) for s in schemes]}
    edges, last = [], "source"
    for i in range(rungs):
        x, y, union = f"x{i}", f"y{i}", f"union{i}"
        offerings[x], offerings[y] = passing(*schemes), passing(*schemes)
        offerings[union] = [Contract((s, s), (s,)) for s in schemes]
        edges += [Edge(last, x), Edge(last, y), Edge(x, union, 0, 0), Edge(y, union, 0, 1)]
        last = union
    return offerings, edges


def test_two_hundred_operators_cost_little(calls: Callable[..., int]) -> None:
    offerings, edges = ladder(67, 16)
    assert len(offerings) > 200
    assert isinstance(accord(offerings, edges), Accordance)
    assert calls(lambda: accord(offerings, edges)) < 1_000_000
    offerings["union66"] = [Contract((c.inputs[0], d.inputs[0]), c.outputs) for c, d in _apart(offerings["union66"])]
    refused = accord(offerings, edges)
    assert isinstance(refused, Refusal) and refused.edge is not None and refused.edge.target == "union66"
    assert calls(lambda: accord(offerings, edges)) < 1_000_000


def test_cycles_one_after_the_other_do_not_multiply() -> None:
    """Each rung may go on with any scheme, so there are 4 ** 40 choices, and only the last rung fails."""
    offerings, edges = ladder(40, 4)
    schemes = [c.outputs[0] for c in offerings["source"]]
    for i in range(40):
        offerings[f"union{i}"] = [Contract((s, s), (t,)) for s in schemes for t in schemes]
    assert isinstance(accord(offerings, edges), Accordance)
    offerings["union39"] = [Contract((s, t), (s,)) for s in schemes for t in schemes if s != t]
    refused = accord(offerings, edges)
    assert isinstance(refused, Refusal) and refused.edge is not None and refused.edge.target == "union39"
    assert refused.node not in dict(refused.given)


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1])))
def test_blocks_hang_together_by_more_than_one_node(pairs: set[tuple[int, int]]) -> None:
    beside = {n: sorted({a + b - n for a, b in pairs if n in (a, b)}) for n in range(8)}
    found = blocks(beside)
    for a, b in pairs:
        assert sum({a, b} <= block for block, _, _ in found) == 1
    for block, joint, _ in found:
        assert joint in block
        for gone in block:
            left = block - {gone}
            reached, front = set(), [min(left)]
            while front:
                reached.add(node := front.pop())
                front += [n for n in beside[node] if n in left - reached]
            assert reached == left
    for i, (block, joint, last) in enumerate(found):
        later = set[int]().union(*(b for b, _, _ in found[i + 1 :]))
        assert block & later <= {joint} and (last or joint in later)


def _apart(contracts: list[Contract]) -> Iterator[tuple[Contract, Contract]]:
    yield from zip(contracts, [*contracts[1:], contracts[0]], strict=True)
