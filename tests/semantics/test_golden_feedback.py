"""What feedback must take away and what it must not, on the engine, with what that spares. See also `golden_talk`."""

from __future__ import annotations

from typing import Any

import pytest
from backend import difference, on_kernels, on_reference
from case import Case, Cut, Feed

#: One event or punctuation an epoch, so that "before" and "after" are what they say.
ONE = Cut(file_rows=1, max_rows=1, overlap=False)
PROBES = "wid int, speed double, id int"


def feed(name: str, schema: str, *items: Any, promises: str = ".punctuated().ends()") -> Feed:
    names = [a.split()[0] for a in schema.split(", ")]
    rows = (
        item if isinstance(item, str) else dict(zip(names, (*item, n), strict=True)) for n, item in enumerate(items)
    )
    return Feed(name, tuple(("", row) for row in rows), promises, schema=schema)


def windows(aggregate: str, *items: Any) -> Case:
    return Case(f"s.group_by('wid').agg(y='{aggregate}(speed)')", (feed("s", PROBES, *items),))


def rows(case: Case, said: dict[int, list[str]], cut: Cut = ONE) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in on_kernels(case, cut, said).rows), key=repr)


def test_average_groups_are_purged_blocked_and_passed_on() -> None:
    case = windows("avg", (4, 50.0), (30, 10.0), (4, 52.0), (30, 20.0), "[4, *, *]", "[30, *, *]")
    found = on_kernels(case, ONE, {1: ["not [< 20, *]"]})
    assert [r["wid"] for r in found.rows] == [30]
    assert found.saved["aggregate-1 purged"] == 1
    assert found.saved.get("source:s dropped", 0) + found.saved.get("source:s never read", 0) == 1


def test_a_maximum_can_only_rise() -> None:
    """Window 4 is doomed at once, and does not form again from smaller values; window 5 is when it gets there."""
    events = [(4, 60), (5, 20), (4, 10), (5, 55), (6, 30), (4, 5), (5, 1)]
    # Whole numbers: the maximum of others may become NaN, which nothing matches.
    case = Case(
        "s.group_by('wid').agg(y='max(speed)')",
        (feed("s", PROBES.replace("double", "int"), *events, "[4, *, *]", "[5, *, *]", "[6, *, *]"),),
    )
    found = on_kernels(case, ONE, {1: ["not [*, >= 50]"]})
    assert [tuple(r.values()) for r in found.rows] == [(6, 30)]
    assert found.saved["aggregate-1 purged"] >= 2
    assert found.saved.get("source:s dropped", 0) + found.saved.get("source:s never read", 0) >= 2


def test_a_minimum_below_is_not_pushed_as_a_filter_of_events() -> None:
    """Dropping events below 10 would make 12 of the minimum of window 4."""
    case = windows("min", (4, 12.0), (4, 3.0), (5, 11.0), "[4, *, *]", "[5, *, *]")
    assert rows(case, {0: ["not [*, < 10]"]}) == [(5, 11.0)]


def joined(right: list[Any], how: str = "inner") -> Case:
    left = feed("s", "a int, b int, id int", (1, 1), (2, 1), (3, 1), (4, 1), "[*, 1, *]")
    other = feed("t", "b int, c int, id int", *right)
    return Case(f"s.join(t.drop('id'), 'b', {how!r}).select('a', 'b', 'c')", (left, other))


def test_keys_go_to_both_sides() -> None:
    found = on_kernels(joined([(1, 1), (1, 2), (7, 7)]), ONE, {0: ["not [*, 1, *]"]})
    assert found.rows == []
    assert {"source:s", "source:t"} <= {k.split(" ")[0] for k in found.saved}


def test_the_padded_side_of_an_outer_join_is_left_alone() -> None:
    """Without its partner a left event would come out padded, as it never would have."""
    case = joined([(1, 2)], "left")
    found = rows(case, {0: ["not [*, *, 2]"]})
    assert found == [] and len(on_reference(case).rows) == 4


def test_windows_that_overlap_keep_events_that_others_need() -> None:
    """Event 9 is in the windows that start at 0 and at 5; only the first of them is ignored."""
    schema = "ts int, v int, id int"
    case = Case(
        "s.window(10, slide=5).agg(n='count(*)', total='sum(v)')",
        (feed("s", schema, (1, 1), (4, 1), (9, 1), (12, 1), promises=".disorder(0).ends()"),),
    )
    found = on_kernels(case, ONE, {0: ["not [<= 0, *, *]"]})
    assert sorted(tuple(r.values()) for r in found.rows) == [(5, 2, 2), (10, 1, 1)]
    assert sum(n for what, n in found.saved.items() if what.startswith("source:s")) >= 2


# --- what is held when feedback comes --------------------------------------------------------------------------------

DEAF = ".feedback(exploit=False)"
#: Which inputs drop what they are told about. Where one does not, the operator does it, on arrival.
LISTENING = {"both": ("", ""), "left": ("", DEAF), "right": (DEAF, ""), "neither": (DEAF, DEAF)}
KEYED = "k int, x int, id int"
HOLDS = (1, 1), (2, 2), (2, 3), (3, 4), (1, 1), (1, 5)
OTHER = (2, 9), (2, 2), (1, 1), (1, 6), (6, 5)


def held(query: str, listening: str = "both", right_holds: bool = False) -> Case:
    """`{s}` and `{t}`, one of which brings an event of key 1 in the first epoch; both bring some later."""
    items = (OTHER, HOLDS) if right_holds else (HOLDS, OTHER)
    texts = {name: f"{name}{deaf}.drop('id'){deaf}" for name, deaf in zip("st", LISTENING[listening])}
    feeds = (feed(name, KEYED, *brought) for name, brought in zip("st", items))
    return Case(query.format(**texts), tuple(f for f in feeds if f"{{{f.name}}}" in query))


def check_held(case: Case, operator: str, *dropped: str) -> None:
    """Key 1 is ignored from the second epoch on: what is held of it goes, and what comes later does not come in."""
    said = f"not [{', '.join('1' if n == 'k' else '*' for n in case.stream().schema.names)}]"
    plain, found = on_reference(case).rows, on_kernels(case, ONE, {1: [said]})
    wanted = [r for r in plain if r["k"] != 1]
    assert wanted, "nothing is left that could go wrong"
    assert difference(found.rows, plain)[0] == [], "invented"
    assert difference(wanted, found.rows)[0] == [], "lost"
    assert found.saved == {f"{operator} purged": 1} | {f"{place} dropped": 2 for place in dropped}


@pytest.mark.parametrize(
    ("listening", "right_holds"),
    [("both", False), ("right", False), ("left", True), ("neither", False), ("neither", True)],
)
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_join_forgets_an_event_before_its_partner_comes(how: str, listening: str, right_holds: bool) -> None:
    """Its partners are dropped, so it must not come out alone; nor may those that come when it is forgotten."""
    case = held(f"{{s}}.join({{t}}, 'k', {how!r})", listening, right_holds)
    places = (f"join-1#{n}" if deaf else f"source:{'st'[n]}" for n, deaf in enumerate(LISTENING[listening]))
    check_held(case, "join-1", *places)


#: The others that keep rows, and what they are called.
KEEPERS = {
    "{s}.join({t}, 'k', rows=2)": "join-1",
    "{s}.join({t}, 'k', 'anti', rows=2)": "join-1",
    "ps.join({s}, {t}, on='k', strategy='mjoin')": "multijoin-1",
    "{s}.intersect({t})": "join-1",
    "{s}.difference({t})": "join-1",
    "{s}.distinct()": "distinct-1",
    "{s}.order_by('x')": "orderby-1",
    "{s}.top(2, by='x desc', per='k')": "top-1",
}


@pytest.mark.parametrize("listening", ["both", "neither"])
@pytest.mark.parametrize("query", KEEPERS)
def test_what_is_kept_is_forgotten_and_does_not_come_in_again(query: str, listening: str) -> None:
    case, operator = held(query, listening), KEEPERS[query]
    own, source = (f"{operator}#{n}" for n in range(2)), (f"source:{f.name}" for f in case.feeds)
    check_held(case, operator, *(place for place, _ in zip(own if listening == "neither" else source, case.feeds)))


def test_order_with_slack_waits_for_nothing_that_nobody_wants() -> None:
    """Each event pushes another one out of the buffer, on a stream that does not end too: none of them may go."""
    items = tuple(("", {"ts": t, "k": "a" if t < 4 else "b", "id": t}) for t in range(20))
    case = Case("s.order_by('ts', slack=2)", (Feed("s", items, "", schema="ts int, k string, id int"),))
    plain = on_reference(case)
    found = on_kernels(case, Cut(file_rows=2, max_rows=2), {0: ["not [*, 'b', *]"]})
    assert [r["ts"] for r in found.rows if r["k"] == "a"] == [0, 1, 2, 3]
    assert difference(found.rows, plain.rows)[0] == []
