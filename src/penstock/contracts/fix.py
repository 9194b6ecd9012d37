"""The reverse question: which smallest punctuation schemes on the sources would make a plan safe?

More templates never hurt, so it is searched from both ends: what must be there, because without it even everything
else together does not do; and then sets of growing size of what is left, each tried on the plan itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from penstock.algebra.operator import Distinct, Source
from penstock.algebra.plan import Plan
from penstock.algebra.source import Adaptive, Disorder, EndOfSource, InBand
from penstock.contracts.flow import Origin, Verdict
from penstock.contracts.offering import weigh
from penstock.contracts.report import Fix
from penstock.contracts.template import Class, Scheme, Template

#: How many verdicts on single operators a search may ask for: it is cut short rather than slow.
_VERDICTS = 30_000
#: How many declarations a fix may have besides those that no fix can do without.
_FREE = 4
#: How many alternatives are offered.
_OFFERED = 4


@dataclass(frozen=True)
class Candidate:
    """A template on one attribute of a source; `rank` is how unusual it would be to have it."""

    stream: str
    attribute: str
    how: Class
    rank: int


def fixes(plan: Plan) -> tuple[Fix, ...]:
    """The smallest sets of declarations that make safe what declarations at sources can make safe, best first.

    Each is verified by the check itself. Empty if the plan is safe, or if nothing that a source says would help.

    >>> from penstock.algebra.builder import Stream
    >>> from penstock.algebra.schema import Schema
    >>> probes = Stream(Source((), Schema.parse("ts timestamp, segment string", "ts"), name="probes"))
    >>> for fix in fixes(probes.window("1 min").group_by("segment").agg(n="count(*)").plan):
    ...     print(fix.declaration.partition("  #")[0])
    probes = probes.disorder("1 min")
    probes = probes.punctuate(ps.Punctuate.once("segment"))
    """
    search = _Search(plan)
    return tuple(
        Fix(", ".join(dict.fromkeys(c.stream for c in chosen)), _declaration(plan, chosen), search.target)
        for chosen in search.smallest()
    )


def fixes_at_the_end(plan: Plan, unsafe: Sequence[str]) -> tuple[Fix, ...]:
    """For a bounded run: let the sources of what is unsafe say when they are over."""
    verdicts = weigh(plan)
    below = {s for i in unsafe for s in verdicts[i].behind.streams}
    silent = [s for s in _sources(plan) if s.name in below and not any(isinstance(p, EndOfSource) for p in s.promises)]
    if not silent:
        return ()
    lines = [f"{_variable(s.name)} = {_variable(s.name)}.ends()" for s in silent]
    return (Fix(", ".join(s.name for s in silent), "\n".join(lines), tuple(unsafe)),)


class _Search:
    """The search for sets of candidates that make the plan as safe as all of them together would."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.schemas = {s.name: s.schema for s in _sources(plan)}
        self.left = _VERDICTS // max(len(plan.nodes), 1)
        now = weigh(plan)
        self.unsafe = {i for i, v in now.items() if not v.safe}
        self.candidates = _candidates(plan, now) if self.unsafe else []
        after = self._verdicts(self.candidates) if self.candidates else now
        self.target = tuple(i for i, v in after.items() if i in self.unsafe and v.safe)

    def smallest(self) -> list[tuple[Candidate, ...]]:
        if not self.target:
            return []
        needed = [c for c in self.candidates if not self._works([d for d in self.candidates if d is not c])]
        if self._works(needed):
            return [tuple(needed)] if needed else []
        free = [c for c in self.candidates if c not in needed]
        for size in range(1, _FREE + 1):
            found: list[tuple[Candidate, ...]] = []
            for more in combinations(free, size):
                if self.left <= 0:
                    break
                if self._works([*needed, *more]):
                    found.append((*needed, *more))
            if found:
                return sorted(found, key=self._cost)[:_OFFERED]
        return []

    def _cost(self, chosen: Sequence[Candidate]) -> tuple[int, int]:
        verdicts = self._verdicts(chosen)
        return sum(c.rank for c in chosen), len({a for v in verdicts.values() for a in v.assumes})

    def _works(self, chosen: Iterable[Candidate]) -> bool:
        verdicts = self._verdicts(chosen)
        return all(verdicts[i].safe for i in self.target)

    def _verdicts(self, chosen: Iterable[Candidate]) -> dict[str, Verdict]:
        self.left -= 1
        more: dict[str, list[Template]] = {}
        for c in chosen:
            more.setdefault(c.stream, []).append(Template.of(self.schemas[c.stream], {c.attribute: c.how}))
        return weigh(self.plan, {name: Scheme.of(*templates) for name, templates in more.items()})


def _candidates(plan: Plan, verdicts: dict[str, Verdict]) -> list[Candidate]:
    """Templates on the attributes of sources that operators with state could use, the most natural first."""
    origins: dict[Origin, None] = {}
    for node in plan.nodes:
        below = [verdicts[i].behind for i in node.inputs]
        used = [o for k, n in verdicts[node.id].useful for o in below[k].origins.get(n, ())]
        if isinstance(node.operator, Distinct):
            # Anything releases there; time is what streams have.
            times = [o for k, n in verdicts[node.id].useful if below[k].is_time(n) for o in below[k].origins.get(n, ())]
            used = times or used
        origins |= dict.fromkeys(used)
    sources = {s.name: s for s in _sources(plan)}
    known = {name: set(verdicts[f"source:{name}"].behind.promised) for name in sources}
    found: dict[Candidate, None] = {}
    for origin in origins:
        source = sources[origin.stream]
        t = source.schema.type_of(origin.attribute)
        is_time = origin.attribute in source.schema.times
        if pa.types.is_integer(t) or pa.types.is_date(t) or pa.types.is_timestamp(t):
            found[Candidate(origin.stream, origin.attribute, "+", 0 if is_time else 1 if origin.label else 5)] = None
        if not is_time and not origin.label:
            found[Candidate(origin.stream, origin.attribute, "#", 2)] = None
    return sorted((c for c in found if frozenset({(c.attribute, c.how)}) not in known[c.stream]), key=lambda c: c.rank)


def _sources(plan: Plan) -> list[Source]:
    return [n.operator for n in plan.nodes if isinstance(n.operator, Source)]


def _declaration(plan: Plan, chosen: Sequence[Candidate]) -> str:
    sources = {s.name: s for s in _sources(plan)}
    return "\n".join(_declared(sources[c.stream], c) for c in chosen)


def _declared(source: Source, candidate: Candidate) -> str:
    """One candidate as Python, in the way that fits what the source promises already."""
    name, a = _variable(source.name), candidate.attribute
    start = f"{name} = {name}"
    word = "up to" if candidate.how == "+" else "value"
    if any(isinstance(p, InBand) for p in source.promises):
        return f"{start}.scheme({_keyword(a, word)})"
    if candidate.how == "+":
        t = source.schema.type_of(a)
        if candidate.rank == 0 and not pa.types.is_integer(t):
            slack = '"1 min"' if pa.types.is_timestamp(t) else '"1 d"'
            on = "" if source.schema.times == (a,) else f', on="{a}"'
            return f"{start}.disorder({slack}{on})"
        return f'{start}.punctuate(ps.Punctuate.sorted_by("{a}"))'
    in_band = f".punctuated().scheme({_keyword(a, word)})"
    if any(isinstance(p, Disorder | Adaptive) for p in source.promises):
        return f'{start}.punctuate(ps.Punctuate.after("{a}", "1 h"))  # or .once("{a}"), or {in_band}'
    return f'{start}.punctuate(ps.Punctuate.once("{a}"))  # or .after("{a}", …), or {in_band}'


def _keyword(attribute: str, word: str) -> str:
    sign = "+" if word == "up to" else "#"
    return f'{attribute}="{word}"' if attribute.isidentifier() else f'"[[`{attribute}`:{sign}]]"'


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name)
