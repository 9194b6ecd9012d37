"""The reverse question: which smallest punctuation schemes on the sources would make a plan safe?

More templates never hurt, so it is searched from both ends: what must be there, because without it even everything
else together does not do; and then sets of growing size of what is left, each tried on the plan itself.
"""

from __future__ import annotations

import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import pyarrow as pa

from penstock.analysis.judge import Memo, weigh
from penstock.contract.flow import AttributeOrigin, Verdict
from penstock.contract.report import Fix
from penstock.contract.template import Class, Scheme, Template
from penstock.operators.source.operator import Source
from penstock.plan.plan import Plan
from penstock.plan.promise import Adaptive, Disorder, EndOfSource, InBand

#: How many verdicts on single operators a search may ask for, and how many of them anew: it is cut short rather than
#: slow. What it offers then makes the plan safe all the same, but perhaps something smaller would too.
_VERDICTS, _NEW = 40_000, 3_000
#: How many declarations a fix may have besides those that no fix can do without.
_FREE = 4
#: How many alternatives are offered.
_OFFERED = 4
#: Of this rank are templates that are offered only where nothing else helps: a key that only grows.
_UNUSUAL = 5


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

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.pattern.schema import Schema
    >>> probes = StreamBuilder(Source((), Schema.parse("ts timestamp, segment string", "ts"), name="probes"))
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
    names = variables(plan)
    lines = [f"{names[s.name]} = {names[s.name]}.ends()" for s in silent]
    return (Fix(", ".join(s.name for s in silent), "\n".join(lines), tuple(unsafe)),)


class _Search:
    """The search for sets of candidates that make the plan as safe as all of them together would."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.schemas = {s.name: s.schema for s in _sources(plan)}
        self.memo: Memo = {}
        self.asked = 0
        now = weigh(plan, memo=self.memo)
        self.unsafe = {i for i, v in now.items() if not v.safe}
        self.candidates = _candidates(plan, now) if self.unsafe else []
        after = self._verdicts(self.candidates) if self.candidates else now
        self.target = tuple(i for i, v in after.items() if i in self.unsafe and v.safe)

    def smallest(self) -> list[tuple[Candidate, ...]]:
        if not self.target:
            return []
        return self._exactly() or [self._guessed()]

    def _exactly(self) -> list[tuple[Candidate, ...]]:
        """All sets of the least size that work; nothing if that takes too long."""
        needed: list[Candidate] = []
        if len(self.candidates) * len(self.plan.nodes) > _NEW:
            return []
        for c in self.candidates:
            if self._spent:
                return []
            if not self._works([d for d in self.candidates if d is not c]):
                needed.append(c)
        free = [c for c in self.candidates if c not in needed]
        for size in range(_FREE + 1):
            found: list[tuple[Candidate, ...]] = []
            for more in combinations(free, size):
                if self._spent:
                    break
                if self._works([*needed, *more]):
                    found.append((*needed, *more))
            if found:
                usual = [chosen for chosen in found if all(c.rank < _UNUSUAL for c in chosen)]
                return sorted(usual or found, key=self._cost)[:_OFFERED]
        return []

    def _guessed(self) -> tuple[Candidate, ...]:
        """Time everywhere, or else the ends of keys, or else all; without what turns out to be superfluous."""
        ranks = sorted({c.rank for c in self.candidates})
        guesses = [[c for c in self.candidates if c.rank == r] for r in ranks] + [self.candidates]
        chosen = next(g for g in guesses if self._works(g))
        for c in reversed(chosen):
            if self._spent:
                break
            if self._works(rest := [d for d in chosen if d is not c]):
                chosen = rest
        return tuple(chosen)

    @property
    def _spent(self) -> bool:
        return self.asked > _VERDICTS or len(self.memo) > _NEW

    def _cost(self, chosen: Sequence[Candidate]) -> tuple[int, int, int]:
        """Usual ones first, of one kind before mixed ones, and what assumes least of the data."""
        verdicts = self._verdicts(chosen)
        assumed = len({a for v in verdicts.values() for a in v.assumes})
        return len({c.how for c in chosen}), sum(c.rank for c in chosen), assumed

    def _works(self, chosen: Iterable[Candidate]) -> bool:
        verdicts = self._verdicts(chosen)
        return all(verdicts[i].safe for i in self.target)

    def _verdicts(self, chosen: Iterable[Candidate]) -> dict[str, Verdict]:
        self.asked += len(self.plan.nodes)
        more: dict[str, list[Template]] = {}
        for c in chosen:
            more.setdefault(c.stream, []).append(Template.of(self.schemas[c.stream], {c.attribute: c.how}))
        return weigh(self.plan, {name: Scheme.of(*templates) for name, templates in more.items()}, self.memo)


def _candidates(plan: Plan, verdicts: dict[str, Verdict]) -> list[Candidate]:
    """Templates on the attributes of sources that operators with state could use, the most natural first."""
    origins: dict[AttributeOrigin, None] = {}
    for node in plan.nodes:
        below = [verdicts[i].behind for i in node.inputs]
        origins |= dict.fromkeys(o for k, n in verdicts[node.id].useful for o in below[k].origins.get(n, ()))
    sources = {s.name: s for s in _sources(plan)}
    known = {name: set(verdicts[f"source:{name}"].behind.promised) for name in sources}
    found: dict[Candidate, None] = {}
    for origin in origins:
        source = sources[origin.stream]
        t = source.schema.type_of(origin.attribute)
        is_time = origin.attribute in source.schema.times
        if pa.types.is_integer(t) or pa.types.is_date(t) or pa.types.is_timestamp(t):
            found[
                Candidate(origin.stream, origin.attribute, "+", 0 if is_time else 1 if origin.label else _UNUSUAL)
            ] = None
        if not is_time and not origin.label and not pa.types.is_floating(t):
            found[Candidate(origin.stream, origin.attribute, "#", 2)] = None
    return sorted((c for c in found if frozenset({(c.attribute, c.how)}) not in known[c.stream]), key=lambda c: c.rank)


def _sources(plan: Plan) -> list[Source]:
    return [n.operator for n in plan.nodes if isinstance(n.operator, Source)]


def _declaration(plan: Plan, chosen: Sequence[Candidate]) -> str:
    sources, names = {s.name: s for s in _sources(plan)}, variables(plan)
    return "\n".join(_declared(sources[c.stream], names[c.stream], c) for c in chosen)


def _declared(source: Source, name: str, candidate: Candidate) -> str:
    """One candidate as Python, in the way that fits what the source promises already."""
    a = candidate.attribute
    quoted = json.dumps(a, ensure_ascii=not a.isprintable())
    start = f"{name} = {name}"
    word = "up to" if candidate.how == "+" else "value"
    if any(isinstance(p, InBand) for p in source.promises):
        return f"{start}.scheme({_keyword(quoted, word)})"
    if candidate.how == "+":
        t = source.schema.type_of(a)
        if candidate.rank == 0 and not pa.types.is_integer(t):
            slack = '"1 min"' if pa.types.is_timestamp(t) else '"1 d"'
            on = "" if source.schema.times == (a,) else f", on={quoted}"
            return f"{start}.disorder({slack}{on})"
        return f"{start}.punctuate(ps.Punctuate.sorted_by({quoted}))"
    in_band = f".punctuated().scheme({_keyword(quoted, word)})"
    times = source.schema.times
    known = {p.attribute for p in source.promises if isinstance(p, Disorder | Adaptive)}
    if len(times) == 1 and times[0] in known and pa.types.is_timestamp(source.schema.type_of(times[0])):
        return f'{start}.punctuate(ps.Punctuate.after({quoted}, "1 h"))  # or .once({quoted}), or {in_band}'
    return f"{start}.punctuate(ps.Punctuate.once({quoted}))  # or .after({quoted}, …), or {in_band}"


def _keyword(quoted: str, word: str) -> str:
    name = quoted[1:-1]
    return f'{name}="{word}"' if _is_name(name) else f'**{{{quoted}: "{word}"}}'


def variables(plan: Plan) -> dict[str, str]:
    """By source, a Python name to write for its stream: its own where that is one, and no two alike.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.pattern.schema import Schema
    >>> a, b, c = (StreamBuilder(Source((), Schema.parse("k int"), name=n)) for n in ("my-cars", "my_cars", "class"))
    >>> variables(a.union(b, c).plan)
    {'my-cars': 'my_cars_2', 'my_cars': 'my_cars', 'class': 'class_'}
    """
    names = list(dict.fromkeys(s.name for s in _sources(plan)))
    found = {name: name for name in names if _is_name(name)}
    taken = {*found.values(), "ps"}
    for name in names:
        if name not in found:
            written = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))
            written = written if written.isidentifier() else f"s_{written}"
            written += "_" * keyword.iskeyword(written)
            tries = (written if n == 1 else f"{written}_{n}" for n in count(1))
            found[name] = next(t for t in tries if t not in taken)
            taken.add(found[name])
    return {name: found[name] for name in names}


def _is_name(text: str) -> bool:
    """Whether Python takes a text for a name, as it is: it writes some letters in another way."""
    same = text.isidentifier() and unicodedata.normalize("NFKC", text) == text
    return same and not keyword.iskeyword(text) and text != "ps"
