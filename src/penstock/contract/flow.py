"""What is known of the punctuation on one edge of a plan before anything runs, and of an operator that it meets.

A `Flow` holds the templates that will come, each with what must hold of the data for it to come for every event; where
each attribute comes from; and which attributes have finite domains. A `Verdict` is what an operator makes of flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from penstock.contract.report import Output, State
from penstock.contract.template import Class, Scheme, Template
from penstock.pattern.schema import Schema
from penstock.plan.domain import Domains, domains_behind
from penstock.plan.operator import Operator
from penstock.plan.spec import spec_of

#: How many templates are followed on one edge; those with the fewest assumptions and attributes come first.
MOST = 48
_SAID: dict[str, str] = {"+": "{} up to", "#": "{}: each value", "range": "{}: ranges"}

#: How many templates are named where several release the same.
_NAMED = 3
#: How many combinations of templates of several inputs are looked at.
_COMBINED = 256
#: Of two classes on one attribute, that of the intersection: of "up to 7" and "5", it is "5".
_NARROW: dict[Class, int] = {"-": 0, "+": 1, "range": 2, "#": 3}

#: The attributes of a template that are not `-`, with their classes.
Tags = frozenset[tuple[str, Class]]
#: Templates, and for each what must hold of the data beyond the declared schemes.
Promised = Mapping[Tags, frozenset[str]]


@dataclass(frozen=True)
class AttributeOrigin:
    """Where an attribute comes from: an attribute of a source, or the label of a window over it.

    `padded`: an outer join has come between, which leaves it null where there is no partner.
    """

    stream: str
    attribute: str
    label: bool = False
    padded: bool = False


@dataclass(frozen=True)
class Aside:
    """Punctuation that nobody may count on, in words with a place for each attribute.

    >>> print(Aside(("v",), "{} outside its bounds"))
    v outside its bounds
    """

    names: tuple[str, ...]
    words: str

    @classmethod
    def but_nulls(cls, tags: Tags) -> Aside:
        """A template that says nothing of events which an outer join has left null there.

        >>> print(Aside.but_nulls(frozenset({("ts", "+")})))
        ts up to, but of nulls
        """
        parts = sorted(tags)
        return cls(tuple(n for n, _ in parts), " + ".join(_SAID[c] for _, c in parts) + ", but of nulls")

    def __str__(self) -> str:
        return self.words.format(*self.names)


@dataclass(frozen=True)
class Flow:
    """What is known of one edge.

    `open` says that anything may come besides, since the data decides; `ends` that every source below says when a
    bounded run has read everything; `limited` that only so many events come in all, and then the end. `asides` are
    punctuations that come too, but that speak of no event, or not of all: nobody may count on them.
    """

    schema: Schema
    streams: tuple[str, ...] = ()
    promised: Promised = field(default_factory=dict)
    open: bool = False
    ends: bool = False
    origins: Mapping[str, tuple[AttributeOrigin, ...]] = field(default_factory=dict)
    finite: Domains = field(default_factory=dict)
    limited: bool = False
    asides: frozenset[Aside] = frozenset()

    @property
    def name(self) -> str:
        return " and ".join(self.streams)

    @property
    def scheme(self) -> Scheme:
        return Scheme.of(*(self.template(tags) for tags in self.promised))

    def template(self, tags: Tags) -> Template:
        return Template.of(self.schema, dict(tags))

    def say(self, tags: Tags) -> str:
        """A template in words, its attributes in the order of the schema."""
        parts = sorted(tags, key=lambda part: self.schema.index(part[0]))
        return " + ".join(_SAID[c].format(n) for n, c in parts) or "the end"

    def any_of(self, promised: Promised) -> str:
        """The templates on which something is released: "`ts up to` or `trip: each value`"."""
        named = [f"`{self.say(t)}`" for t in ordered(promised)]
        return " or ".join(named[:_NAMED]) + (f" or {len(named) - _NAMED} more" if len(named) > _NAMED else "")

    @property
    def words(self) -> str:
        said = [self.say(t) for t in ordered(self.promised)] + (["what the data says"] if self.open else [])
        return "; ".join(said) or "no punctuation"

    @property
    def coming(self) -> tuple[str, ...]:
        """All punctuation that will come, in words: what to count on, what comes besides, and the end.

        >>> flow = Flow(Schema.parse("ts int, v int"), promised={frozenset({("ts", "+")}): frozenset()}, ends=True)
        >>> flow.coming
        ('ts up to', 'everything, at the end')
        """
        said = [self.say(t) for t in ordered(self.promised)] + sorted(map(str, self.asides))
        told = ["what the data says"] if self.open else []
        return (*said, *told, *(["everything, at the end"] if self.ends or self.limited else []))

    def described(self, attributes: Sequence[str]) -> dict[Tags, frozenset[str]]:
        """Templates on some attributes alone. Others must have finite domains, whose values all come with time."""
        found: list[tuple[Tags, frozenset[str]]] = []
        for tags, assumed in self.promised.items():
            beyond = [(n, c) for n, c in tags if n not in attributes]
            if all(n in self.finite for n, _ in beyond) and len(beyond) < len(tags):
                told = {f"punctuation comes for every declared value of `{n}`" for n, c in beyond if c != "+"}
                found.append((tags.difference(beyond), assumed | told))
        return least(found)

    def is_time(self, attribute: str) -> bool:
        return attribute in self.schema.times or any(o.label for o in self.origins.get(attribute, ()))

    def wanted(self, attributes: Iterable[str]) -> tuple[str, ...]:
        """What sources would have to promise for attributes on this edge: `probe: ts up to`."""
        found = []
        for name in dict.fromkeys(attributes):
            how = _SAID["+" if self.is_time(name) else "#"]
            told = [f"{o.stream}: {how.format(o.attribute)}" for o in self.origins.get(name, ()) if o.stream]
            found += told or [f"`{name}` is computed on the way: no promise of a source reaches it"]
        return tuple(dict.fromkeys(found))


def behind(
    operator: Operator,
    below: Flow,
    promised: Promised,
    origins: Mapping[str, tuple[AttributeOrigin, ...]] | None = None,
) -> Flow:
    """What is known behind an operator with one input, given the templates that it passes on."""
    return Flow(
        operator.schema,
        below.streams,
        promised,
        below.open,
        below.ends,
        below.origins if origins is None else origins,
        domains_behind(operator, [below.finite]),
        asides=asides_behind(operator, [below]),
    )


def asides_behind(operator: Operator, below: Sequence[Flow]) -> frozenset[Aside]:
    """What comes besides behind an operator that lets pass what is said of attributes that it carries."""
    lineage = spec_of(operator).lineage(operator)
    found: list[set[Aside]] = []
    for k, flow in enumerate(below):
        moves = {
            a: [[n for n, c in lineage.items() if (k, name) in c.origins] for name in a.names] for a in flow.asides
        }
        found.append({replace(a, names=names) for a, targets in moves.items() for names in product(*targets)})
    if any(c.each for c in lineage.values()):  # An event comes from one input: all must have said it.
        return frozenset(set.intersection(*found))
    return frozenset().union(*found)


@dataclass(frozen=True)
class Verdict:
    """What one operator makes of what arrives: the fate of its state and results, and what flows on behind it.

    `useful` are the attributes, by input, on which punctuation could help it.
    """

    state: State
    output: Output
    behind: Flow
    why: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    useful: tuple[tuple[int, str], ...] = ()

    @property
    def safe(self) -> bool:
        return self.state != "unbounded" and self.output != "held back"

    @property
    def at_the_end(self) -> str | None:
        """That a run which ends releases all that nothing else does, if it is so."""
        if self.safe or not self.behind.ends:
            return None
        return f"but all of it leaves at the end of the run, which {self.behind.name} will tell"


def promised_by(scheme: Iterable[Template]) -> dict[Tags, frozenset[str]]:
    """The templates of a scheme, without the one that is the end."""
    return least((frozenset(t.tagged.items()), frozenset()) for t in scheme if t.tagged)


def least(promised: Iterable[tuple[Tags, frozenset[str]]]) -> dict[Tags, frozenset[str]]:
    """Without templates that say less than another: `ts up to` makes `ts up to + trip: each value` superfluous.

    Unless the other assumes something of the data that this one does not.
    """
    found: dict[Tags, frozenset[str]] = {}
    for tags, assumed in sorted(promised, key=_rank):
        if not any(t <= tags and a <= assumed for t, a in found.items()):
            found.setdefault(tags, assumed)
            if len(found) == MOST:
                break
    return found


def ordered(promised: Promised) -> list[Tags]:
    """Templates from the best to the least: few assumptions, few attributes, time before values."""
    return [tags for tags, _ in sorted(promised.items(), key=_rank)]


def _rank(entry: tuple[Tags, frozenset[str]]) -> tuple[int, int, bool, list[tuple[str, Class]]]:
    tags, assumed = entry
    return len(assumed), len(tags), any(c != "+" for _, c in tags), sorted(tags)


def met(inputs: Sequence[Promised]) -> dict[Tags, frozenset[str]]:
    """What several inputs promise alike: one template of each, taken together, attribute by attribute."""
    found: list[tuple[Tags, frozenset[str]]] = []
    for chosen in islice(product(*(p.items() for p in inputs)), _COMBINED):
        classes: dict[str, Class] = {}
        for name, how in (part for tags, _ in chosen for part in tags):
            if _NARROW[how] > _NARROW[classes.get(name, "-")]:
                classes[name] = how
        found.append((frozenset(classes.items()), frozenset().union(*(assumed for _, assumed in chosen))))
    return least(found)


def also_ends(waiting: Flow, mine: str, ending: Flow, its: str) -> frozenset[str]:
    """That every value of an attribute, which waits, is among the values that end in another stream.

    A scheme speaks only of values that occur in its own stream, so this is an assumption, unless both attributes are
    the same attribute of the same source.
    """
    here, there = waiting.origins.get(mine, ()), ending.origins.get(its, ())
    if here and here == there and len(here) == 1:
        return frozenset()
    whose, what = _named(waiting, mine)
    where, ends = _named(ending, its)
    other = f" (`{ends}`)" if ends != what else ""
    return frozenset({f"every `{what}` of {whose} also ends in {where}{other}"})


def end_together(waiting: Flow, ending: Flow, pairs: Sequence[tuple[str, str]]) -> frozenset[str]:
    """That values of several attributes which come together end together in another stream, not only each for itself.

    As with `also_ends`, there is nothing to assume where both are the same attributes of the same source.
    """
    if len(pairs) < 2 or not any(also_ends(waiting, mine, ending, its) for mine, its in pairs):
        return frozenset()
    whose, where = _named(waiting, pairs[0][0])[0], _named(ending, pairs[0][1])[0]
    what = " and ".join(f"`{_named(waiting, mine)[1]}`" for mine, _ in pairs)
    return frozenset({f"{what} that come together in {whose} also end together in {where}"})


def never_null(flow: Flow, attribute: str) -> frozenset[str] | None:
    """That an attribute is never null, unless that is known: a template on it speaks of values, and null is none.

    None where an outer join leaves nulls: who joins so expects them.
    """
    if attribute in flow.finite:
        return frozenset()
    # An event with null there would be matched by no punctuation of the template, as it has to be.
    if any(attribute == name for tags in flow.promised for name, _ in tags):
        return frozenset()
    if any(o.padded for o in flow.origins.get(attribute, ())):
        return None
    if flow.is_time(attribute):
        return frozenset()
    whose, what = _named(flow, attribute)
    return frozenset({f"`{what}` of {whose} is never null"})


def none_null(places: Iterable[tuple[Flow, str]]) -> frozenset[str] | None:
    """That several attributes are never null; None where that cannot be assumed of one."""
    found: set[str] = set()
    for flow, attribute in places:
        assumed = never_null(flow, attribute)
        if assumed is None:
            return None
        found |= assumed
    return frozenset(found)


def goes_on(flow: Flow, time: str, tags: Tags) -> frozenset[str]:
    """That time which is told for each key is told beyond the last event of a key, as far as windows reach.

    A scheme speaks only of events that occur. A window is complete, and a partner out of reach, some time later. Time
    that is told for all events alike goes on with them.
    """
    beside = [n for n, how in sorted(tags) if how != "+" and n not in flow.finite]
    if not beside:
        return frozenset()
    whose, what = _named(flow, time)
    each = " and ".join(f"`{_named(flow, n)[1]}`" for n in beside)
    return frozenset({f"`{what}` of each {each} of {whose} goes on after its last event"})


def _named(flow: Flow, attribute: str) -> tuple[str, str]:
    """The streams that an attribute comes from, and its name there."""
    origins = flow.origins.get(attribute, ())
    names = {o.attribute for o in origins}
    streams = " and ".join(dict.fromkeys(o.stream for o in origins if o.stream)) or flow.name or "the input"
    return streams, names.pop() if len(names) == 1 and not any(o.label for o in origins) else attribute
