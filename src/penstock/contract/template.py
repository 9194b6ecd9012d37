"""Templates and schemes: which punctuations a stream will carry, without their values.

A *template* gives every attribute a class: `+` up to a value, `#` one value, `range` a closed interval, `-` anything. A
*scheme* is a set of templates. A stream *obeys* a scheme if every punctuation in it conforms to one of the templates
(C1) and every event is, sooner or later, matched by a punctuation of each template (C2). So a scheme says both what
comes and that it does come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.errors import UserError, did_you_mean
from penstock.pattern.pattern import Pattern
from penstock.pattern.restriction import ANY, Equal, OneOf, Range, Restriction
from penstock.pattern.schema import Schema

Class = Literal["+", "#", "range", "-"]
CLASSES: tuple[Class, ...] = ("+", "#", "range", "-")
_WORDS: dict[str, Class] = {"up to": "+", "value": "#", "each value": "#", "range": "range", "any": "-", "*": "-"}
_PART = re.compile(r"\s*(`[^`]+`|[^`:,\[\]]+?)\s*:\s*([^`,\[\]]+?)\s*")
_PARTS = re.compile(r"(?:`[^`]*`|[^`,])+")  # A name in backticks may have commas.
_PLAIN = re.compile(r"[A-Za-z_]\w*\Z")
_WHOLE = re.compile(r"\[\[.*?\]\]")


@dataclass(frozen=True)
class Template:
    """A class for each attribute of a schema, in its order; attributes that are `-` need not be named.

    >>> s = Schema.parse("a timestamp, b int, c int")
    >>> t = Template.parse("[[a:+, b:#, c:-]]", s)
    >>> t.accepts(Pattern.parse("[<= '2026-01-01 23:30:00', 26, *]", s)), t.accepts(Pattern.parse("[*, 26, *]", s))
    (True, False)
    >>> print(t, "=", t.words)
    [[a:+, b:#, c:-]] = a up to + b: each value
    """

    names: tuple[str, ...]
    classes: tuple[Class, ...]

    @classmethod
    def of(cls, schema: Schema, classes: Mapping[str, str]) -> Template:
        """By attribute name; classes as signs or in words ("up to", "value", "range")."""
        found: dict[str, Class] = {}
        for name, said in classes.items():
            spelled = schema.resolve(name)
            if spelled is None:
                raise UserError(f"scheme: unknown column '{name}'", hint=did_you_mean(name, schema.names))
            found[spelled] = _sign(name, said)
        return cls(schema.names, tuple(found.get(n, "-") for n in schema.names))

    @classmethod
    def parse(cls, text: str, schema: Schema | None = None) -> Template:
        """Read `[[ts:+, sensor:#, speed:-]]`. Without a schema, the text names every attribute, in order.

        >>> Template.parse("[[a:+, b:-]]").names
        ('a', 'b')
        """
        inside = text.strip()
        if not (inside.startswith("[[") and inside.endswith("]]")):
            raise UserError(f"scheme '{text}'", hint="a template is written [[ts:+, sensor:#, speed:-]]")
        classes: dict[str, str] = {}
        for part in filter(None, (p.strip() for p in _PARTS.findall(inside[2:-2]))):
            found = _PART.fullmatch(part)
            if found is None:
                raise UserError(f"scheme '{text}': '{part}'", hint="write name:class, with + # range or -")
            name = found[1].strip("`")
            if name in classes:
                raise UserError(f"scheme '{text}': '{name}' twice", hint="give every attribute one class")
            classes[name] = found[2]
        if schema is not None:
            return cls.of(schema, classes)
        return cls(tuple(classes), tuple(_sign(n, c) for n, c in classes.items()))

    def __getitem__(self, name: str) -> Class:
        return self.classes[self.names.index(name)]

    @property
    def tagged(self) -> dict[str, Class]:
        """The attributes that are not `-`, with their classes."""
        return {n: c for n, c in zip(self.names, self.classes, strict=True) if c != "-"}

    @property
    def ends(self) -> bool:
        """Whether it is the end of the stream: nothing but `-`."""
        return not self.tagged

    def accepts(self, pattern: Pattern) -> bool:
        """Whether a punctuation conforms."""
        return pattern.schema.names == self.names and all(
            class_of(r) == c for r, c in zip(pattern.restrictions, self.classes, strict=True)
        )

    def onto(self, schema: Schema, names: Mapping[str, str]) -> Template | None:
        """The same classes on attributes under other names in another schema; None if a tagged one has no name."""
        if any(n not in names for n in self.tagged):
            return None
        return Template.of(schema, {names[n]: c for n, c in self.tagged.items()})

    @property
    def words(self) -> str:
        said = {"+": "{} up to", "#": "{}: each value", "range": "{}: ranges"}
        return " + ".join(said[c].format(n) for n, c in self.tagged.items()) or "the end"

    def __str__(self) -> str:
        pairs = zip(self.names, self.classes, strict=True)
        return f"[[{', '.join(f'{_quoted(n)}:{c}' for n, c in pairs)}]]"


def _quoted(name: str) -> str:
    return name if _PLAIN.match(name) else f"`{name}`"


def _sign(name: str, said: str) -> Class:
    sign = _WORDS.get(said.strip().lower(), said.strip())
    for known in CLASSES:
        if sign == known:
            return known
    raise UserError(f"scheme: '{name}' is '{said}'", hint="'up to' (+), 'value' (#), 'range' or 'any' (-)")


def class_of(restriction: Restriction) -> Class | None:
    """The class of one restriction of a punctuation; None if no class has it (such as `> 5`)."""
    if restriction is ANY:
        return "-"
    if isinstance(restriction, Equal) or (isinstance(restriction, OneOf) and len(restriction.values) >= 1):
        return "#"  # A list of values is that many punctuations in one.
    if isinstance(restriction, Range):
        if restriction.low is None and restriction.high is not None:
            return "+"
        return "range" if restriction.low is not None and restriction.high is not None else None
    return None


@dataclass(frozen=True)
class Scheme:
    """A set of templates over one schema. Empty: no punctuation is promised.

    >>> s = Schema.parse("a int, b int")
    >>> print(Scheme.of(Template.of(s, {"b": "value"}), Template.of(s, {"a": "up to"})))
    {[[a:+, b:-]], [[a:-, b:#]]}
    """

    templates: frozenset[Template] = frozenset()

    @classmethod
    def of(cls, *templates: Template) -> Scheme:
        return cls(frozenset(templates))

    @classmethod
    def parse(cls, text: str, schema: Schema | None = None) -> Scheme:
        """Read templates, with or without the braces around them.

        >>> print(Scheme.parse("{[[a:-, b:#]], [[a:+, b:-]]}"))
        {[[a:+, b:-]], [[a:-, b:#]]}
        """
        if left := _WHOLE.sub("", text).strip(" {},"):
            raise UserError(f"scheme '{text}': '{left}'", hint="write templates such as [[ts:+, sensor:#, speed:-]]")
        return cls(frozenset(Template.parse(t, schema) for t in _WHOLE.findall(text)))

    def __iter__(self) -> Iterator[Template]:
        return iter(sorted(self.templates, key=str))

    def __len__(self) -> int:
        return len(self.templates)

    def __contains__(self, template: object) -> bool:
        return template in self.templates

    def accepts(self, pattern: Pattern) -> bool:
        """C1 for one punctuation."""
        return any(t.accepts(pattern) for t in self.templates)

    def __or__(self, other: Scheme | Iterable[Template]) -> Scheme:
        more = other.templates if isinstance(other, Scheme) else frozenset(other)
        return Scheme(self.templates | more)

    @property
    def words(self) -> str:
        return "; ".join(t.words for t in self) or "no punctuation"

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self)) + "}"
