"""Which attributes of each operator's output anybody looks at.

What nobody looks at is not computed, so it cannot fail either. That must not depend on what an optimizer happens to
find out, so it is decided here, from the plan alone.
"""

from __future__ import annotations

from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of


def looked_at(plan: Plan) -> dict[str, frozenset[str]]:
    """By operator, the attributes of its output that matter to some consumer.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int, b string").select("a", c="cast(b as int)", d="a + 1").where("c > 3").select("a")
    >>> sorted(looked_at(s.plan)["project-1"])
    ['a', 'c']
    """
    found: dict[str, frozenset[str]] = {}
    for node in reversed(plan.nodes):
        consumers = plan.consumers(node.id)
        wanted: set[str] = set() if consumers else set(node.operator.schema.names)
        for consumer in consumers:
            for port, name in enumerate(consumer.inputs):
                if name == node.id:
                    wanted |= set(spec_of(consumer.operator).reads(consumer.operator, port, found[consumer.id]))
        found[node.id] = frozenset(wanted & set(node.operator.schema.names))
    return found


def computed(plan: Plan) -> dict[str, tuple[str, ...]]:
    """By operator, the attributes of its output that have a value: all but those that nobody looks at.

    What is only passed on has one although nobody looks at it.

    >>> import penstock as ps
    >>> s = ps.stream("s", "a int, b string").select("a", "b", c="cast(b as int)").where("a > 3").select("a")
    >>> computed(s.plan)["select-1"]
    ('a', 'b')
    """
    wanted = looked_at(plan)
    found: dict[str, tuple[str, ...]] = {}
    for node in plan.nodes:
        below = [frozenset(found[i]) for i in node.inputs]
        made = spec_of(node.operator).computed(node.operator, below, wanted[node.id])
        found[node.id] = tuple(n for n in node.operator.schema.names if n in made)
    return found
