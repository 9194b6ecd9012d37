"""What operators remember of promises does not grow with what has gone by."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

import penstock as ps
from penstock.analysis.propagate import Propagation
from penstock.pattern.pattern import Pattern
from penstock.plan.orders import Answer

EPOCHS = 160
Told = Callable[[int], tuple[list[str], list[str]]]


def stream(name: str) -> ps.Stream:
    return ps.stream(name, "ts int, k int, v int", time="ts")


def mixed(epoch: int, late: int = 0) -> list[str]:
    """Five keys per epoch, in no order, of numbers that are all used."""
    block, place = divmod(max(epoch - late, 0), 8)
    keys = list(range(40 * block, 40 * block + 40))
    random.Random(block).shuffle(keys)
    return [f"[*, {k}, *]" for k in keys[5 * place : 5 * place + 5]]


JOIN = stream("s").join(stream("t"), "k")
CASES: dict[str, tuple[ps.Stream, Told]] = {
    "every other key, by both": (JOIN, lambda e: ([f"[*, {2 * e}, *]"], [f"[*, {2 * e}, *]"])),
    "every other key, by both, later": (JOIN, lambda e: ([f"[*, {2 * e}, *]"], [f"[*, {2 * max(e - 9, 0)}, *]"])),
    "keys against a frontier of keys": (JOIN, lambda e: ([f"[*, {2 * e}, *]"], [f"[*, <= {2 * e}, *]"])),
    "a frontier of keys against keys": (JOIN, lambda e: ([f"[*, <= {2 * e}, *]"], [f"[*, {2 * e}, *]"])),
    "keys in no order": (JOIN, lambda e: (mixed(e), mixed(e, late=3))),
    "values that are no keys": (
        stream("s").join(stream("t"), "k", within=5),
        lambda e: ([f"[*, *, {2 * e}]", f"[< {e}, *, *]"], [f"[*, *, {2 * e}]", f"[< {e}, *, *]"]),
    ),
    "a union": (stream("s").union(stream("t")), lambda e: (mixed(e), mixed(e, late=3))),
    "a union with a frontier": (stream("s").union(stream("t")), lambda e: (mixed(e), [f"[*, <= {5 * e}, *]"])),
    "an order of time": (
        stream("s").union(stream("t")).order_by("ts"),
        lambda e: ([*mixed(e), f"[< {e}, *, *]"], [*mixed(e), f"[< {e}, *, *]"]),
    ),
}


def sizes(query: ps.Stream, told: Told) -> list[int]:
    """The length of what is to be stored after each epoch; the state says to every question that it holds nothing."""
    query = query.distinct()  # Somebody listens.
    plan = query.plan
    propagation = Propagation(plan)
    found = []
    for epoch in range(EPOCHS):
        sources = {f"source:{name}": texts for name, texts in zip("st", told(epoch))}
        propagation.run({i: [Pattern.parse(t, plan[i].operator.schema) for t in s] for i, s in sources.items()})
        orders = propagation.orders()
        propagation.answered({i: [[Answer(0) for _ in a] for a in o.ask] for i, o in orders.items() if o.ask})
        found.append(len(json.dumps(propagation.to_json())))
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_is_remembered_does_not_grow(name: str) -> None:
    found = sizes(*CASES[name])
    early, late = max(found[: EPOCHS // 4]), max(found[EPOCHS // 2 :])
    assert late <= 1.2 * early + 100
