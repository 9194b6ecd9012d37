"""Snapshot operators: the worked examples, level by level, and the defects that a copy of the literature would have."""

from __future__ import annotations

from collections import Counter

import pytest
from speculative.operator import feed
from speculative.snapshot import LEVELS, CtiPolicy
from speculative.state import STATES

from penstock.reference.lifetimes.event import events
from penstock.reference.lifetimes.history import coalesce, fold
from penstock.reference.lifetimes.oracle import COMBINE, snapshot

#: Per example: level and CTI policy → what is said after each event of the input.
GOLDEN: dict[str, dict[tuple[str, CtiPolicy], list[str]]] = {
    # G4
    "I(1,10,5) I(4,8,3) I(2,6,2) R(4,8,5,3) C(6) I(12,15,4) C(∞)": {
        ("PP", "strict"): [
            "",
            "I(1,4,5)",
            "R(1,4,2,5) I(2,4,7)",
            "",
            "I(4,5,10) I(5,6,7) C(5)",
            "I(6,10,5)",
            "I(12,15,4) C(∞)",
        ],
        ("PP", "chop"): [
            "",
            "I(1,4,5)",
            "R(1,4,2,5) I(2,4,7)",
            "",
            "I(4,5,10) I(5,6,7) C(6)",
            "I(6,10,5)",
            "I(12,15,4) C(∞)",
        ],
        ("OP", "strict"): [
            "I(1,∞,5)",
            "R(1,∞,4,5) I(4,∞,8)",
            "R(1,4,2,5) R(4,∞,4,8) I(2,4,7) I(4,∞,10)",
            "",
            "R(4,∞,5,10) I(5,6,7) I(6,∞,5) C(5)",
            "R(6,∞,10,5) I(12,∞,4)",
            "R(12,∞,15,4) C(∞)",
        ],
        ("OP", "chop"): [
            "I(1,∞,5)",
            "R(1,∞,4,5) I(4,∞,8)",
            "R(1,4,2,5) R(4,∞,4,8) I(2,4,7) I(4,∞,10)",
            "",
            "R(4,∞,5,10) I(5,6,7) I(6,∞,5) C(6)",
            "R(6,∞,10,5) I(12,∞,4)",
            "R(12,∞,15,4) C(∞)",
        ],
        ("ML", "strict"): [
            "I(1,10,5)",
            "R(1,10,4,5) I(4,8,8) I(8,10,5)",
            "R(1,4,2,5) R(4,8,4,8) I(2,4,7) I(4,6,10) I(6,8,8)",
            "R(4,6,5,10) R(6,8,6,8) R(8,10,8,5) I(5,6,7) I(6,10,5)",
            "C(5)",
            "I(12,15,4)",
            "C(∞)",
        ],
        ("ML", "chop"): [
            "I(1,10,5)",
            "R(1,10,4,5) I(4,8,8) I(8,10,5)",
            "R(1,4,2,5) R(4,8,4,8) I(2,4,7) I(4,6,10) I(6,8,8)",
            "R(4,6,5,10) R(6,8,6,8) R(8,10,8,5) I(5,6,7) I(6,10,5)",
            "C(6)",
            "I(12,15,4)",
            "C(∞)",
        ],
    },
    # G5
    "I(1,10,5) I(4,8,3) I(12,15,4) R(4,8,4,3) C(∞)": {
        ("PP", policy): [
            "",
            "I(1,4,5)",
            "I(4,8,8) I(8,10,5)",
            "R(4,8,4,8) R(8,10,8,5) R(1,4,1,5) I(1,10,5)",
            "I(12,15,4) C(∞)",
        ]
        for policy in ("strict", "chop")
    },
    # G6
    "I(1,4,5) I(2,6,3) C(3) I(5,9,2) C(7) C(∞)": {
        ("PP", "strict"): ["", "I(1,2,5)", "C(2)", "I(2,4,8) I(4,5,3)", "I(5,6,5) C(6)", "I(6,9,2) C(∞)"],
        ("PP", "chop"): [
            "",
            "I(1,2,5)",
            "I(2,3,8) C(3)",
            "I(3,4,8) I(4,5,3)",
            "I(5,6,5) I(6,7,2) C(7)",
            "I(7,9,2) C(∞)",
        ],
    },
    # G7
    "I(1,∞,100) C(1) R(1,∞,10,100) R(1,10,5,100) I(4,9,200) C(10)": {
        ("PP", policy): ["", "C(1)", "", "", "I(1,4,100)", "I(4,5,300) I(5,9,200) C(10)"]
        for policy in ("strict", "chop")
    }
    | {
        ("ML", policy): [
            "I(1,∞,100)",
            "C(1)",
            "R(1,∞,10,100)",
            "R(1,10,5,100)",
            "R(1,5,4,100) I(4,5,300) I(5,9,200)",
            "C(10)",
        ]
        for policy in ("strict", "chop")
    },
    # G8
    "I(1,∞,5) C(5) I(10,∞,7) C(∞)": {
        ("PP", "strict"): ["", "C(1)", "I(1,10,5)", "I(10,∞,12) C(∞)"],
        ("PP", "chop"): ["", "I(1,5,5) C(5)", "I(5,10,5)", "I(10,∞,12) C(∞)"],
    },
}


@pytest.mark.parametrize(
    ("text", "level", "policy", "said"),
    [(text, *way, said) for text, ways in GOLDEN.items() for way, said in ways.items()],
)
def test_what_is_said_after_each_event(text: str, level: str, policy: CtiPolicy, said: list[str]) -> None:
    engine = LEVELS[level](STATES["sum"], cti=policy)
    assert [engine.on(event) for event in events(text)] == [events(line) for line in said]


@pytest.mark.parametrize("text", GOLDEN)
@pytest.mark.parametrize("level", LEVELS)
def test_the_worked_examples_come_to_their_definition(text: str, level: str) -> None:
    stream = events(text)
    expected = snapshot(fold(stream), COMBINE["sum"])
    closing = events(text + " C(∞)")
    assert fold(feed(LEVELS[level](STATES["sum"], cti="strict"), closing)) == expected
    assert coalesce(fold(feed(LEVELS[level](STATES["sum"]), closing))) == coalesce(expected)


def test_g4_comes_to_the_table_that_is_given() -> None:
    expected = Counter({(1, 2, 5), (2, 4, 7), (4, 5, 10), (5, 6, 7), (6, 10, 5), (12, 15, 4)})
    for level in LEVELS.values():
        assert fold(feed(level(STATES["sum"], cti="strict"), events(next(iter(GOLDEN))))) == expected


def test_g4_what_is_held_after_the_third_event() -> None:
    engine = LEVELS["PP"](STATES["rank"])
    feed(engine, events("I(1,10,5) I(4,8,3) I(2,6,2)"))
    held = {time: {p for _, p in boundary.state.payloads()} for time, boundary in engine.pos}
    assert held == {float("-inf"): set(), 1: {5}, 2: {5, 2}, 4: {5, 3, 2}}
    assert [time for time, _ in engine.ecq] == [6, 8, 10]
    assert engine.tau == 4


#: What the literature's listings get wrong, as the smallest stream that shows it, and the table that is right.
DEFECTS = {
    "1: an empty snapshot keeps its boundary": ("I(1,3,5) C(4)", "I(1,3,5)"),
    "2: two tuples that end together are one boundary": ("I(8,12,6) I(8,12,6) C(∞)", "I(8,12,12)"),
    "3: what is coalesced is the snapshot before": ("I(8,10,7) R(8,10,8,7)", ""),
    "4: the boundary before a new end that is none": ("I(1,8,1) I(9,12,1) R(1,8,5,1) C(∞)", "I(1,5,1) I(9,12,1)"),
    "5: a retraction leaves the open snapshot alone": ("I(9,∞,9) R(9,∞,11,9) C(∞)", "I(9,11,9)"),
    "6: the watermark falls with the last boundary": (
        "I(8,12,1) R(8,12,8,1) I(0,∞,5) I(1,3,3) C(∞)",
        "I(0,1,5) I(1,3,8) I(3,∞,5)",
    ),
    "7: a CTI does not overtake an open snapshot": ("I(9,12,4) C(10) C(∞)", "I(9,12,4)"),
    "8: an open snapshot ends where its first tuple does": ("I(6,7,3) I(8,10,3) C(∞)", "I(6,7,3) I(8,10,3)"),
}


@pytest.mark.parametrize("policy", ["strict", "chop"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("defect", DEFECTS)
def test_defects_of_the_literature(defect: str, level: str, policy: CtiPolicy) -> None:
    text, expected = DEFECTS[defect]
    said = feed(LEVELS[level](STATES["sum"], cti=policy), events(text))
    assert coalesce(fold(said)) == fold(events(expected))  # Folding refuses what is invalid.


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_cti_has_passed_is_not_joined_with_what_comes_after(level: str) -> None:
    """The boundary at 4 outlives its tuple: without it [1, 4) would have to be told anew, from before the CTI."""
    stream = events("I(1,10,5) I(4,8,3) I(12,15,4) C(2) R(4,8,4,3) C(∞)")
    said = feed(LEVELS[level](STATES["sum"]), stream)
    assert fold(said) == fold(events("I(1,4,5) I(4,10,5) I(12,15,4)"))
    strict = feed(LEVELS[level](STATES["sum"], cti="strict"), stream)
    assert fold(strict) == fold(events("I(1,10,5) I(12,15,4)"))


def test_the_order_preserving_level_may_have_to_go_back_at_a_full_retraction() -> None:
    """The paper promises ordered output for every ordered input; the boundary that vanishes here refutes it."""
    said = feed(LEVELS["OP"](STATES["sum"]), events("I(0,6,8) I(1,7,4) R(1,7,1,4)"))
    assert [e.sync for e in said] != sorted(e.sync for e in said)
    assert coalesce(fold([*said, *events("R(0,∞,6,8)")])) == fold(events("I(0,6,8)"))


def test_zeros_where_nothing_holds() -> None:
    """G1 with values, and the gaps that are results of their own with the other policy."""
    text = "I(1,5,100) I(4,9,200) I(11,12,300) C(∞)"
    rows = events("I(1,4,100) I(4,5,300) I(5,9,200) I(11,12,300)")
    for level in LEVELS.values():
        assert fold(feed(level(STATES["sum"], cti="strict"), events(text))) == fold(rows)
        zeros = fold([*rows, *events("I(0,1,0) I(9,11,0)")])
        assert fold(feed(level(STATES["sum"], cti="strict", empty="zero"), events(text))) == zeros


def test_a_sum_of_nothing_is_not_a_sum_of_zero() -> None:
    for level in LEVELS.values():
        assert fold(feed(level(STATES["sum"]), events("I(1,4,3) I(1,4,-3) C(∞)"))) == Counter({(1, 4, 0): 1})
