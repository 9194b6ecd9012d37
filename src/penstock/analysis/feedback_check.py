"""Feedback is state too: which of it will be forgotten, and which could live for ever.

A guard may go when a punctuation says that nothing more matches it. Whether one will come is known before the start:
behind every operator flows a scheme, and a pattern is covered if a template of it is (`covers`). Up to a value, that is
certain as the stream goes on. Value by value it takes that the value comes and ends. A guard that nothing covers does
no harm by itself: those it contains are not kept beside it, and there are only so many in one place. But it is never
let go for a reason, and so the check says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.analysis.judge import weigh
from penstock.analysis.kept_feedback import Kept, kept
from penstock.contract.feedback import covers
from penstock.contract.flow import Flow, Tags, Verdict, ordered
from penstock.contract.report import Fate
from penstock.contract.template import class_of
from penstock.pattern.example import example
from penstock.pattern.feedback import RECORDS, Feedback, Intent
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Equal, OneOf, Range, Restriction, equal
from penstock.plan.place import Place
from penstock.plan.plan import Plan
from penstock.plan.spec import spec_of


@dataclass(frozen=True)
class Lasting:
    """What becomes of one record of a feedback. `why` names the punctuation that covers it, or says why none will.

    `assumes` is what must hold of the data for that punctuation to come. `doomed` records are those of groups that an
    aggregate will find; their values are made up.
    """

    place: str
    operator: str
    pattern: Pattern
    fate: Fate
    why: str
    pinned: bool = False
    doomed: bool = False
    assumes: frozenset[str] = frozenset()

    @property
    def endless(self) -> bool:
        """Whether it could live for ever."""
        return self.fate in ("stays", "if values end", "as the data says")


def forgettable(
    plan: Plan,
    feedback: Feedback,
    at: str | None = None,
    *,
    edge: Place | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    bounded: bool = False,
) -> list[Lasting]:
    """What becomes of the records of one feedback, wherever they would be kept.

    It is told to the operator `at` (the last one) by the consumer whose input is `edge`. A `bounded` run forgets at
    its end what its sources say is over.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> cars = StreamBuilder(Source((), Schema.parse("ts timestamp, speed double", "ts"), name="cars")).disorder("5 s")
    >>> for text in ("not [< '2026-01-01', > 40]", "not [*, > 40]"):
    ...     for f in forgettable(cars.plan, Feedback.parse(text, cars.schema)):
    ...         print(f.place, f.fate, f.why, sep=": ")
    source:cars: goes: `ts up to` will cover it
    source:cars: stays: no punctuation on `speed` will ever say that
    """
    if feedback.intent is Intent.DEMANDED:
        return []
    weighed = weigh(plan) if verdicts is None else verdicts
    found = [(k, False) for k in kept(plan, feedback, at, edge)]
    for swept in [k for k, _ in found if k.sweep]:
        operator = plan[swept.speaker].operator
        # Of a group only what it is grouped by is carried from events.
        group = {n: equal(example(operator.schema.type_of(n))) for n in spec_of(operator).lineage(operator)}
        told = Feedback(Intent.ASSUMED, Pattern.by_name(operator.schema, group))
        found += [(k, True) for k in kept(plan, told, swept.speaker)]
    return [_lasting(k, weighed[k.speaker].behind, bounded, of_doomed) for k, of_doomed in found]


def _lasting(record: Kept, flow: Flow, bounded: bool, of_doomed: bool) -> Lasting:
    fate, why, assumes = fate_of(flow, record.pattern, bounded)
    if record.waits:
        why = f"others read {record.speaker} too, so it waits there until they say the same; {why}"
    return Lasting(record.place, record.operator, record.pattern, fate, why, record.pinned, of_doomed, assumes)


def fate_of(flow: Flow, pattern: Pattern, bounded: bool = False) -> tuple[Fate, str, frozenset[str]]:
    """What becomes of a pattern behind an operator: its fate, why, and what that assumes of the data."""
    covering = [tags for tags in ordered(flow.promised) if is_covered(flow, tags, pattern)]
    certain = [tags for tags in covering if all(how == "+" for _, how in tags)]
    if certain:
        return "goes", f"`{flow.say(certain[0])}` will cover it", flow.promised[certain[0]]
    if bounded and flow.ends:
        return "at the end", "the end of the run covers everything", frozenset()
    if flow.limited:
        assumed = "as many events come as the limit lets through"
        return "at the end", "the end, which a limit tells, covers everything", frozenset({assumed})
    if covering:
        names = " and ".join(f"`{n}`" for n, how in sorted(covering[0]) if how != "+")
        why = f"it goes when {names} ends; values that never come, or have ended before, stay"
        return "if values end", why, flow.promised[covering[0]]
    if flow.open:
        return "as the data says", "scheme(…) would tell before the start what the data will say", frozenset()
    padded = [n for n in pattern.restricted if any(o.padded for o in flow.origins.get(n, ()))]
    if padded:
        # Promises of it cover no event that lacks it, and so are not counted on; a guard matches no such event.
        why = f"an outer join leaves `{padded[0]}` null at times; it goes if what is promised of its values suffices"
        return "as the data says", why, frozenset()
    return "stays", _why(flow, pattern), frozenset()


def is_covered(flow: Flow, tags: Tags, pattern: Pattern) -> bool:
    """Whether punctuations of one template will contain the pattern, or the values that it lists one by one."""
    lists = [n for n, how in tags if how == "#" and isinstance(pattern[n], OneOf)]
    return len(lists) <= 1 and covers(flow.template(tags), pattern)


def _why(flow: Flow, pattern: Pattern) -> str:
    """Why nothing covers a pattern, by the template that comes nearest."""
    if not pattern.restricted:
        return "nothing but the end says that no event at all will come"
    if not flow.promised:
        return "no punctuation comes there"
    named = [tags for tags in ordered(flow.promised) if any(n in pattern.restricted for n, _ in tags)]
    names = " or ".join(f"`{n}`" for n in pattern.restricted)
    if not named:
        return f"no punctuation on {names} will ever say that"
    nearest = min(named, key=lambda tags: sum(n not in pattern.restricted for n, _ in tags))
    beyond = [f"`{n}`" for n, _ in sorted(nearest) if n not in pattern.restricted]
    if beyond:
        return f"punctuation says `{flow.say(nearest)}`, never of all {' and '.join(beyond)} at once"
    other = next((n for n, how in sorted(nearest) if not _fits(how, pattern[n])), pattern.restricted[0])
    return f"punctuation says `{flow.say(nearest)}`, never `{outlined(other, pattern[other])}`"


def _fits(how: str, restriction: Restriction) -> bool:
    found = class_of(restriction)
    return found == how or (how == "+" and found is not None)


def remarks(
    plan: Plan,
    feedback: Feedback,
    at: str | None = None,
    *,
    edge: Place | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
) -> list[str]:
    """What somebody who gives a feedback should know: which of its guards could live for ever, a line for each.

    >>> from penstock.builder.stream import StreamBuilder
    >>> from penstock.operators.source.operator import Source
    >>> from penstock.pattern.schema import Schema
    >>> cars = StreamBuilder(Source((), Schema.parse("ts timestamp, speed double", "ts"), name="cars")).disorder("5 s")
    >>> remarks(cars.plan, Feedback.parse("not [< '2026-01-01', *]", cars.schema))
    []
    >>> print(*remarks(cars.plan, Feedback.parse("not [*, > 40]", cars.schema)))
    source:cars keeps not [speed > …] for ever: no punctuation on `speed` will ever say that (at most 64 are kept)
    """
    found = forgettable(plan, feedback, at, edge=edge, verdicts=verdicts)
    return list(dict.fromkeys(line(f, feedback.intent) for f in found if f.endless))


def line(found: Lasting, intent: Intent = Intent.ASSUMED) -> str:
    """One record that could live for ever, on a line."""
    what = outline(Feedback(intent, found.pattern))
    what = f"{what} for each group that is doomed" if found.doomed else what
    limit = f"at {RECORDS}, further feedback is declined" if found.pinned else f"at most {RECORDS} are kept"
    how = "for ever" if found.fate == "stays" else "perhaps for ever"
    return f"{found.operator} keeps {what} {how}: {found.why} ({limit})"


def outline(feedback: Feedback) -> str:
    """A feedback without its values.

    >>> from penstock.pattern.schema import Schema
    >>> outline(Feedback.parse("not [< 7, *, {1, 2}]", Schema.parse("ts int, v int, k int")))
    'not [ts < …, k = …]'
    """
    pattern = feedback.pattern
    return f"{feedback.intent} [{', '.join(outlined(n, pattern[n]) for n in pattern.restricted) or '*'}]"


def outlined(name: str, restriction: Restriction) -> str:
    """A restriction without its values."""
    if restriction is ANY:
        return f"{name} *"
    if isinstance(restriction, Range):
        if restriction.low is None:
            return f"{name} {'<=' if restriction.high_closed else '<'} …"
        if restriction.high is None:
            return f"{name} {'>=' if restriction.low_closed else '>'} …"
        return f"{name} in …"
    return f"{name} = …" if isinstance(restriction, Equal | OneOf) else f"{name} …"


def worst(found: Iterable[Lasting]) -> list[Lasting]:
    """One record for each operator and outline: that which lasts longest."""
    rank: list[Fate] = ["goes", "at the end", "if values end", "as the data says", "stays"]
    chosen: dict[tuple[str, str], Lasting] = {}
    for each in found:
        key = (each.operator, outline(Feedback(Intent.ASSUMED, each.pattern)))
        if key not in chosen or rank.index(each.fate) > rank.index(chosen[key].fate):
            pinned = each.pinned or (key in chosen and chosen[key].pinned)
            chosen[key] = replace(each, pinned=pinned)
    return list(chosen.values())
