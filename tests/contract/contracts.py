"""Contracts: what an operator asks of its inputs, and what it then promises of its outputs.

An operator that runs under a contract, with inputs that obey the input schemes, guarantees that its outputs obey the
output schemes (G1), that neither event nor feedback stays in its state for ever (G2), and that all correct output
appears (G3). A contract is *realizable* if some implementation can keep it. Which contracts those are is said by
*forms* that know no schema: blueprints with variables for schemes and sets of attributes (`GCF`), and rules that also
know what a blueprint cannot say (`Selecting`, `Joining`, `Grouping`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Final, Protocol

from accepting import ANY_FEEDBACK, NO_FEEDBACK, Feedback

from penstock.contract.feedback import covers, tags_covered
from penstock.contract.template import Class, Scheme, Template
from penstock.errors import UserError

_FEEDBACK = " with feedback "


@dataclass(frozen=True)
class Contract:
    """One scheme per input and per output; feedback in per output, feedback out per input (default: none).

    `lineage` says which output attribute comes from which attribute of which input; left out, equal names are meant.

    >>> join = Contract.parse("{[[a:-, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}")
    >>> join.inputs[1].words, join.feedback_out
    ('b up to', (NO_FEEDBACK, NO_FEEDBACK))
    >>> print(Contract.parse("{[[a:+]]} -> {[[a:+]]} with feedback ⟲ -> ∅"))
    {[[a:+]]} -> {[[a:+]]} with feedback ⟲ -> ∅
    """

    inputs: tuple[Scheme, ...]
    outputs: tuple[Scheme, ...]
    feedback_in: tuple[Feedback, ...] = ()
    feedback_out: tuple[Feedback, ...] = ()
    lineage: frozenset[tuple[str, int, str]] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feedback_in", _each(self.feedback_in, len(self.outputs), "output"))
        object.__setattr__(self, "feedback_out", _each(self.feedback_out, len(self.inputs), "input"))

    @classmethod
    def parse(cls, text: str) -> Contract:
        """Read `In; In -> Out; Out`, with ` with feedback In; In -> Out; Out` behind it if there is feedback.

        Feedback flows the other way: what comes in does so at the outputs, and what goes out, at the inputs.
        """
        schemes, _, feedback = text.partition(_FEEDBACK)
        inputs, outputs = _sides(schemes, text)
        came, went = _sides(feedback, text) if feedback else ((), ())
        return cls(
            tuple(map(Scheme.parse, inputs)),
            tuple(map(Scheme.parse, outputs)),
            tuple(map(_read_feedback, came)),
            tuple(map(_read_feedback, went)),
        )

    @property
    def well_formed(self) -> bool:
        """Whether all accepted feedback will be contained in punctuation, so that it need not be kept for ever.

        Each input must promise that: what still comes at any of them could make an output that the feedback matches.
        A source has no inputs; its own output counts. ⟲ is accepted without being kept.

        >>> Contract.parse("{[[a:+, b:-]]} -> {[[a:+, b:-]]} with feedback {[[a:+, b:#]]} -> ∅").well_formed
        True
        >>> Contract.parse("{[[a:+, b:#]]} -> {[[a:+, b:#]]} with feedback {[[a:+, b:-]]} -> ∅").well_formed
        False
        """
        return all(
            self._covered(template, o)
            for o, feedback in enumerate(self.feedback_in)
            if isinstance(feedback, Scheme)
            for template in feedback
        )

    def _covered(self, feedback: Template, output: int) -> bool:
        if not self.inputs:
            return any(tags_covered(t, feedback.tagged) for t in self.outputs[output])
        return all(
            any(tags_covered(t, self._traced(feedback, i)) for t in scheme) for i, scheme in enumerate(self.inputs)
        )

    def _traced(self, feedback: Template, i: int) -> dict[str, Class | None]:
        """The classes of feedback under the names of an input. What has no name there is left out: that widens it."""
        if not self.lineage:
            return dict(feedback.tagged)
        return {n: feedback.tagged[m] for m, j, n in self.lineage if j == i and m in feedback.tagged}

    def renamed(self, i: int, names: Mapping[str, str]) -> Contract:
        """The contract with the attributes of an input under other names, such as those they have in the output.

        >>> c = Contract.parse("{[[src:+, n:-]]}; {[[dst:+, m:-]]} -> {[[src:+, n:-, m:-]]}")
        >>> print(c.renamed(1, {"dst": "src"}).inputs[1])
        {[[src:+, m:-]]}
        """
        given = self.inputs[i]
        moved = Scheme.of(*(Template(tuple(names.get(n, n) for n in t.names), t.classes) for t in given))
        return replace(self, inputs=(*self.inputs[:i], moved, *self.inputs[i + 1 :]))

    def __str__(self) -> str:
        text = f"{_joined(self.inputs)} -> {_joined(self.outputs)}".strip()
        if all(f is NO_FEEDBACK for f in (*self.feedback_in, *self.feedback_out)):
            return text
        return f"{text}{_FEEDBACK}{_joined(self.feedback_in)} -> {_joined(self.feedback_out)}".rstrip()


def _each(given: tuple[Feedback, ...], count: int, what: str) -> tuple[Feedback, ...]:
    if not given:
        return (NO_FEEDBACK,) * count
    if len(given) != count:
        raise UserError(f"contract: feedback for {len(given)} {what}s of {count}", hint="one for each, or none at all")
    return tuple(given)


def _joined(parts: Iterable[object]) -> str:
    return "; ".join(map(str, parts))


def _sides(text: str, whole: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    left, arrow, right = text.partition("->")
    if not arrow:
        raise UserError(f"contract '{whole}'", hint="write {[[a:+]]} -> {[[a:+]]}, inputs and outputs apart by ;")
    return tuple(filter(None, map(str.strip, left.split(";")))), tuple(filter(None, map(str.strip, right.split(";"))))


def _read_feedback(text: str) -> Feedback:
    return {str(ANY_FEEDBACK): ANY_FEEDBACK, str(NO_FEEDBACK): NO_FEEDBACK}.get(text) or Scheme.parse(text)


class Form(Protocol):
    """A schema-independent description of contracts that an operator can keep."""

    def admits(self, contract: Contract) -> bool: ...


def realizable(contract: Contract, *forms: Form) -> bool:
    """Whether a contract is well-formed, and an instance of one of the forms of an operator.

    >>> realizable(Contract.parse("{[[a:+, b:-]]} -> {[[a:+, b:-]]}"), GCF[1])
    True
    >>> realizable(Contract.parse("{[[a:+, b:-]]} -> {[[a:-, b:#]]}"), GCF[1], Selecting(remembers=True))
    False
    """
    return contract.well_formed and any(form.admits(contract) for form in forms)


Binding = dict[str, frozenset[str]]
#: A template by the classes of its attributes, so that their order does not matter.
Classes = frozenset[tuple[str, Class]]


@dataclass(frozen=True)
class Blueprint:
    """A contract with variables: `PS` for a scheme, capitals for sets of attributes, small letters for one attribute.

    `PS with Y:-` is the scheme PS over more attributes Y, which no template tags and the output lacks. A contract is an
    instance if there are disjoint sets of attributes, those that carry a tag not empty, which make the blueprint equal
    to it. `bind` fixes a set beforehand, such as the attributes a join is on.

    >>> join = Blueprint("{[[L:-, J:+]]}; {[[J:+, R:-]]} -> {[[L:-, J:+, R:-]]}")
    >>> contract = Contract.parse("{[[a:-, b:+]]}; {[[b:+, c:-]]} -> {[[a:-, b:+, c:-]]}")
    >>> join.admits(contract), join.bind(J="b").admits(contract), join.bind(J="a").admits(contract)
    (True, True, False)
    """

    text: str
    bound: tuple[tuple[str, frozenset[str]], ...] = ()

    def bind(self, **blocks: str | Iterable[str]) -> Blueprint:
        if unknown := [b for b in blocks if not re.search(rf"\b{b}:", self.text)]:
            raise ValueError(f"{self.text} has no attributes {unknown[0]}")
        sets = ((n, frozenset([names] if isinstance(names, str) else names)) for n, names in blocks.items())
        return replace(self, bound=(*self.bound, *sets))

    def admits(self, contract: Contract) -> bool:
        left, right = _sides(self.text, self.text)
        if (len(left), len(right)) != (len(contract.inputs), len(contract.outputs)):
            return False
        sides = list(zip((*left, *right), (*contract.inputs, *contract.outputs), strict=True))
        schemes: dict[str, frozenset[Classes]] = {}
        for text, scheme in sides:
            if not text.startswith("{"):
                name, _, padding = text.partition(" with ")
                kept = _names(contract.outputs[0] if padding else scheme)
                if padding and dict(self.bound).get(padding[0], _names(scheme) - kept) != _names(scheme) - kept:
                    return False
                narrowed = _narrowed(scheme, kept)
                if narrowed is None or schemes.setdefault(name, narrowed) != narrowed:
                    return False
        plans = [(list(Scheme.parse(text)), list(scheme)) for text, scheme in sides if text.startswith("{")]
        if any(len(drawn) != len(found) for drawn, found in plans):
            return False
        orders = product(*(permutations(found) for _, found in plans))
        return any(self._solvable([*_pairs([d for d, _ in plans], order)]) for order in orders)

    def _solvable(self, pairs: list[tuple[Template, Template]]) -> bool:
        """Whether there are sets that make each drawn template the one it is paired with."""
        binding: Binding = dict(self.bound)
        sums: list[tuple[list[str], frozenset[str]]] = []
        for drawn, found in pairs:
            if set(found.classes) - set(drawn.classes):
                return False
            for sign in set(drawn.classes):
                blocks = [b for b, c in zip(drawn.names, drawn.classes, strict=True) if c == sign]
                names = frozenset(n for n, c in zip(found.names, found.classes, strict=True) if c == sign)
                if sign != "-" and not names:
                    return False
                if len(blocks) > 1:
                    sums.append((blocks, names))
                elif binding.setdefault(blocks[0], names) != names:
                    return False
        for blocks, names in sums:
            rest = [b for b in blocks if b not in binding]
            known = frozenset[str]().union(*(binding[b] for b in blocks if b in binding))
            if len(rest) > 1 or not known <= names:
                return False
            binding.update((b, names - known) for b in rest)
            if known | frozenset[str]().union(*(binding[b] for b in rest)) != names:
                return False
        apart = sum(map(len, binding.values())) == len(frozenset[str]().union(*binding.values()))
        return apart and all(len(names) == 1 for block, names in binding.items() if block[0].islower())


def _pairs(drawn: list[list[Template]], found: Iterable[Iterable[Template]]) -> Iterable[tuple[Template, Template]]:
    for blueprints, templates in zip(drawn, found, strict=True):
        yield from zip(blueprints, templates, strict=True)


def _names(scheme: Scheme) -> frozenset[str]:
    return frozenset(n for t in scheme for n in t.names)


def _narrowed(scheme: Scheme, kept: frozenset[str]) -> frozenset[Classes] | None:
    """The templates of a scheme on some attributes only; None if another one is tagged."""
    if not all(t.tagged.keys() <= kept for t in scheme):
        return None
    return frozenset(frozenset((n, t[n]) for n in t.names if n in kept) for t in scheme)


#: The general contract forms: 1 select, 2 project, 3 and 4 join, 5 window (w the attribute, v the label), 6–9 count.
GCF: Final[Mapping[int, Blueprint]] = {
    1: Blueprint("PS -> PS"),
    2: Blueprint("PS with Y:- -> PS"),
    3: Blueprint("{[[L:-, J:+]]}; {[[J:+, R:-]]} -> {[[L:-, J:+, R:-]]}"),
    4: Blueprint("{[[L:-, J:#]]}; {[[J:#, R:-]]} -> {[[L:-, J:#, R:-]]}"),
    5: Blueprint("{[[w:+, X:-]]} -> {[[v:+, w:-, X:-]]}"),
    6: Blueprint("{[[G:+, R:-]]} -> {[[G:#, n:-]]}"),
    7: Blueprint("{[[G:#, R:-]]} -> {[[G:#, n:-]]}"),
    8: Blueprint("{[[G:+, R:-]], [[G:#, R:-]]} -> {[[G:#, n:-]]}"),
    9: Blueprint("{[[g:+, R:-]]} -> {[[g:+, n:-]]}"),
}


def _tagged(*schemes: Scheme) -> set[str]:
    return {n for scheme in schemes for t in scheme for n in t.tagged}


def _derivable(promised: Scheme, given: Iterable[Template], known: set[str]) -> bool:
    """Whether each template of a scheme says no more than one that is given.

    An operator that remembers which values it has seen may say by value, or about more attributes, what it was told at
    large. Only of `known` attributes is it sure that no event has null there, which no punctuation by value matches.
    """
    told = list(given)
    return all(set(t.tagged) <= known and any(covers(g, t) for g in told) for t in promised)


@dataclass(frozen=True)
class Selecting:
    """Select: passes punctuation on, all or some of it. One that remembers values may also make it narrower."""

    remembers: bool = False

    def admits(self, contract: Contract) -> bool:
        if (len(contract.inputs), len(contract.outputs)) != (1, 1):
            return False
        (given,), (promised,) = contract.inputs, contract.outputs
        if self.remembers:
            return _derivable(promised, given, _tagged(given))
        return promised.templates <= given.templates


@dataclass(frozen=True)
class Joining:
    """Inner equijoin with a hash table per input; attributes of both inputs under the names of the output.

    A stored event of one side leaves when the other side says, of join attributes only, that no partner comes. So each
    side needs a template that tags nothing but join attributes, of whatever classes, and not the same on both sides.
    When the events of one side that a punctuation speaks of have left, the punctuation can be passed on.
    """

    on: frozenset[str]

    def admits(self, contract: Contract) -> bool:
        if (len(contract.inputs), len(contract.outputs)) != (2, 1):
            return False
        (left, right), (promised,) = contract.inputs, contract.outputs
        released = all(any(t.tagged.keys() <= self.on for t in side) for side in (left, right))
        return released and _derivable(promised, (*left, *right), _tagged(left, right) | self.on)


@dataclass(frozen=True)
class Grouping:
    """Aggregate by keys: a punctuation on some of the keys, and nothing else, closes all groups that match it."""

    keys: frozenset[str]

    def admits(self, contract: Contract) -> bool:
        if (len(contract.inputs), len(contract.outputs)) != (1, 1):
            return False
        (given,), (promised,) = contract.inputs, contract.outputs
        closing = [t for t in given if t.tagged.keys() <= self.keys]
        return bool(closing) and _derivable(promised, closing, _tagged(given) & self.keys)
