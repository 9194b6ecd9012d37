"""The protocol of operators: all that the rest of Penstock may ask of one, and the register of who answers.

An operator is a frozen record (`Operator`); what is known of it stands in its room, `penstock.operators.<name>`, and is
asked for through its `Spec`. There are no defaults: whoever adds an operator answers every question, or takes the
answers of a family (`penstock.operators.shared`), and `register` names all that is missing at once. An operator that
nobody registered is an error wherever it turns up.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from penstock.errors import UnknownOperatorError, UserError
from penstock.plan.operator import Operator
from penstock.plan.weight import passing_weights, refusing_weights

if TYPE_CHECKING:
    import random

    from penstock.contract.flow import Flow, Verdict
    from penstock.contract.rates import Rates
    from penstock.contract.size import Bound
    from penstock.pattern.feedback import Feedback
    from penstock.pattern.pattern import Pattern
    from penstock.pattern.restriction import Restriction
    from penstock.plan.behaviour import Behaviour
    from penstock.plan.consistency import Consistency
    from penstock.plan.grid import Grid
    from penstock.plan.response import Response
    from penstock.plan.window import TimeWindow
    from penstock.reference.running import Running

O = TypeVar("O", bound=Operator)  # noqa: E741


class Retraction(Enum):
    """What an operator does about a row that is taken back."""

    REFUSES = "refuses"
    PASSES = "passes"
    ANSWERS = "answers"


#: How many events one event may become: at most one; one for each of its windows; several, as rows of a table; or
#: any number.
Makes = Literal["one", "windows", "several", "any"]


class Traits(NamedTuple):
    """The plain facts of an operator. No defaults: whoever adds one must answer."""

    #: Something stays from one epoch to the next.
    keeps_state: bool
    #: Another order of the same events gives other results.
    heeds_order: bool
    #: An event leaves in the epoch in which it comes, or never.
    at_once: bool
    #: How many events one event may become.
    makes: Makes
    #: Results do not depend on how a stream is cut into epochs.
    exact: bool
    #: Does something with punctuation, but pass it on.
    listens: bool
    #: Has a queue, so that it can take first what somebody waits for.
    queues: bool
    #: What becomes of rows that are taken back.
    retracts: Retraction


@dataclass(frozen=True)
class Carried:
    """An output attribute that has its values from input attributes, unchanged.

    `origins` are (input, attribute). With several: the first that is not null counts, or with `each`, an event comes
    from one input and has the value of that. `padded` are the inputs that may be missing in a row, so null there.
    """

    origins: tuple[tuple[int, str], ...]
    each: bool = False
    padded: frozenset[int] = frozenset()


#: Output attribute → what it carries; what is computed, or comes from elsewhere, is not in it.
Lineage = Mapping[str, Carried]


@dataclass(frozen=True)
class Fact:
    """What is known of the values of an attribute where it comes into being."""

    #: All values that it can have, and never null.
    values: Restriction | None = None
    #: Only every so many values occur.
    grid: Grid | None = None
    #: Never below zero.
    never_negative: bool = False
    #: It is the label of this window.
    label_of: TimeWindow | None = None


@dataclass(frozen=True)
class Measurements:
    """What is known beside the plan when bounds are asked for.

    `epoch` is how many rows of each source an epoch reads at most, `alone` whether there is one source only, `rate` the
    measured events a tick of this operator's output.
    """

    epoch: int | None = None
    alone: bool = True
    rate: float | None = None


@dataclass(frozen=True)
class Told:
    """An example of a feedback that an operator may give to what an input brings.

    `widening`: each contains the one before, so only the last is kept.
    """

    port: int
    feedback: Feedback
    widening: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What a reference operator is told of its place in a plan."""

    node_id: str
    looked_at: frozenset[str] = frozenset()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    #: Of a source, the partitions that its events come from.
    partitions: Sequence[Hashable] = (0,)


class Spec(ABC, Generic[O]):
    """All that is known of one kind of operator."""

    #: The record that it speaks for.
    operator: ClassVar[type[Operator]]

    # --- the plan
    @abstractmethod
    def traits(self, operator: O) -> Traits:
        """The plain facts."""

    @abstractmethod
    def lineage(self, operator: O) -> Lineage:
        """Which output attributes carry which input attributes."""

    @abstractmethod
    def facts(self, operator: O) -> Mapping[str, Fact]:
        """What is known of the values of attributes that come into being here."""

    @abstractmethod
    def reads(self, operator: O, port: int, wanted: frozenset[str]) -> Collection[str]:
        """The attributes of an input that it must be given so that those wanted of its output can be computed."""

    @abstractmethod
    def computed(self, operator: O, below: Sequence[frozenset[str]], wanted: frozenset[str]) -> frozenset[str]:
        """The attributes of the output that have a value, given those of the inputs that do.

        What nobody wants is not computed; what is only passed on has a value all the same.
        """

    @abstractmethod
    def definition(self, operator: O) -> str:
        """The part of it that decides its results. Checkpoints of another definition do not fit."""

    @abstractmethod
    def held(self, operator: O) -> dict[str, Any] | None:
        """What decides when state is released, as plain data for the checkpoint; None if it keeps none."""

    # --- punctuation
    @abstractmethod
    def behaviour(self, operator: O, heard: bool) -> Behaviour:
        """How it treats punctuation. `heard`: somebody further down does something with it."""

    # --- contracts
    @abstractmethod
    def judge(self, operator: O, below: Sequence[Flow]) -> Verdict:
        """Is its state bounded, do results appear, and what flows on, given what arrives."""

    @abstractmethod
    def bound(self, operator: O, below: Sequence[Rates], measured: Measurements) -> tuple[Bound, Rates]:
        """How many rows it keeps at most, and how fast its output goes."""

    @abstractmethod
    def total(self, operator: O, below: Sequence[int | None]) -> int | None:
        """At most how many events it gives in all, given how many come in all; None if there is no telling."""

    # --- feedback
    @abstractmethod
    def respond(self, operator: O, pattern: Pattern) -> Response:
        """The most that it may do about `not pattern`, a pattern over its output that is not empty."""

    @abstractmethod
    def passes_all(self, operator: O, pattern: Pattern) -> bool:
        """Whether a result matches just when its event matches what is passed on, so that nobody need look again."""

    @abstractmethod
    def issues(self, operator: O, below: Sequence[Flow]) -> Iterable[Told]:
        """What it may tell upstream, one example for each kind."""

    # --- speculation
    def revised(self, operator: O, inputs: Sequence[Operator], consistency: Consistency) -> Operator:
        """The same at a point of the dial, over inputs that may take rows back.

        What its traits say answers it, but for an operator that makes corrections of its own.
        """
        match self.traits(operator).retracts:
            case Retraction.PASSES:
                return passing_weights(operator, inputs)
            case Retraction.REFUSES:
                return refusing_weights(operator, inputs)
            case Retraction.ANSWERS:
                raise UnknownOperatorError(
                    f"{operator.kind} answers rows that are taken back, but nobody says how",
                    hint=f"write revised(…) in class {type(self).__name__}",
                )

    # --- lifetimes
    def heeds_lifetimes(self, operator: O) -> bool:
        """Whether it knows what to do with rows that hold for a time; who does not is not given any."""
        return False

    # --- running it
    @abstractmethod
    def step(self, operator: O, node_id: str) -> Any:
        """What tasks do: see `penstock.kernels.step`."""

    @abstractmethod
    def reference(self, operator: O, around: Surroundings) -> Running:
        """The oracle, one event at a time. It shares no code with the kernel."""

    # --- tests
    @abstractmethod
    def example(self, random: random.Random, below: Any, other: Any) -> Any:
        """A random stream with this operator on top of the stream `below` (and `other`, if it has several inputs).

        None where it cannot stand on them. It feeds every test of random plans.
        """


class InRoom:
    """An answer that stands in a module of the room, which is loaded when it is first asked for."""

    def __init__(self, module: str, name: str | None, given: Callable[..., tuple[Any, ...]] | None = None) -> None:
        """`given` picks what it is given from what the question gives; None leaves it as it is."""
        self.module, self.name, self.given = module, name, given

    def __set_name__(self, owner: type, question: str) -> None:
        # A spec that is derived from another, elsewhere, has its answers from where they are.
        package = sys.modules[owner.__module__].__package__
        self.place = self.module if "." in self.module else f"{package}.{self.module}"
        self.name = self.name or question

    def __get__(self, spec: Spec[Any] | None, kind: type[Spec[Any]]) -> Any:
        if spec is None:
            return self
        answer, given = self.found(), self.given
        return answer if given is None else lambda *asked: answer(*given(*asked))

    def found(self) -> Callable[..., Any]:
        """The function or class itself."""
        answer: Callable[..., Any] = getattr(import_module(self.place), str(self.name))
        return answer


def found_in(module: str, name: str | None = None, given: Callable[..., tuple[Any, ...]] | None = None) -> Any:
    """The answer is a function in a module of the room, or in one that is called by its full name.

    Without another name, it has that of the question. It is given what the question gives, or what `given` makes of
    that, and its module is imported no sooner than it is asked.
    """
    return InRoom(module, name, given)


def of_one(module: str, name: str) -> Any:
    """As `found_in`, for an operator with one input: the function is given what there is of that, not a list of it."""
    return InRoom(module, name, lambda operator, below, *more: (operator, below[0], *more))


def made_in(module: str, name: str) -> Any:
    """The answer is made of the operator alone, by a class or function in a module of the room."""
    return InRoom(module, name, lambda operator, *_: (operator,))


class Given:
    """An answer that is always the same."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __get__(self, spec: Spec[Any] | None, kind: type[Spec[Any]]) -> Any:
        return self if spec is None else lambda *_: self.answer


def given(answer: Any) -> Any:
    """The answer is always this."""
    return Given(answer)


_SPECS: dict[type[Operator], Spec[Any]] = {}


def register(spec: Spec[Any]) -> None:
    """Make an operator known. A spec that lacks a piece is refused with all that it lacks.

    >>> class Forgotten(Operator): ...
    >>> class Half(Spec[Forgotten]):
    ...     operator = Forgotten
    >>> register(Half)
    Traceback (most recent call last):
    penstock.errors.UserError: operator 'forgotten' lacks traits, lineage, facts, reads, computed, definition, ...
    """
    kind: Any = spec if isinstance(spec, type) else type(spec)
    name = getattr(kind, "operator", Operator).__name__.lower()
    questions = dict.fromkeys(n for base in reversed(kind.__mro__) for n, a in vars(base).items() if _is_question(a))
    missing = [n for n in questions if n in kind.__abstractmethods__ or _is_nowhere(kind, n)]
    if missing:
        hint = f"write {missing[0]}(…) in class {kind.__name__}; penstock.plan.spec says what it answers"
        raise UserError(f"operator '{name}' lacks {', '.join(missing)}", hint=hint)
    if isinstance(spec, type):
        raise UserError(f"operator '{name}': a class is registered", hint=f"register({kind.__name__}())")
    _SPECS[spec.operator] = spec


def _is_question(answer: Any) -> bool:
    return bool(getattr(answer, "__isabstractmethod__", False))


def _is_nowhere(kind: Any, question: str) -> bool:
    """Whether an answer is said to stand in a module that does not exist. None is imported for that."""
    answer = getattr(kind, question)
    return isinstance(answer, InRoom) and find_spec(answer.place) is None


def spec_of(operator: Operator) -> Spec[Any]:
    """Who answers for an operator.

    >>> from penstock.pattern.schema import Schema
    >>> spec_of(Operator((), Schema.parse("a int")))
    Traceback (most recent call last):
    penstock.errors.UnknownOperatorError: nobody knows the operator 'operator' (Operator). Hint: register its spec: ...
    """
    try:
        return _SPECS[type(operator)]
    except KeyError:
        what = f"nobody knows the operator '{operator.kind}' ({type(operator).__name__})"
        hint = "register its spec: penstock.extend.register(…)"
        raise UnknownOperatorError(what, hint=hint) from None


def from_outside(operators: Iterable[Operator]) -> tuple[Spec[Any], ...]:
    """Who answers for those operators that are not Penstock's own, and that nobody knows who imports Penstock alone."""
    found = {type(o): spec_of(o) for o in operators if not type(o).__module__.startswith("penstock.")}
    return tuple(found.values())


def traits_of(operator: Operator) -> Traits:
    """The plain facts of an operator."""
    return spec_of(operator).traits(operator)


def registered() -> tuple[Spec[Any], ...]:
    """All specs, in the order in which they were registered."""
    return tuple(_SPECS.values())


def same(operator: Operator, names: Iterable[str] | None = None) -> Lineage:
    """The lineage of an operator that passes attributes of its first input on under their names: all, or some."""
    kept = operator.inputs[0].schema.names if names is None else names
    return {n: Carried(((0, n),)) for n in kept if n in operator.schema and n in operator.inputs[0].schema}
