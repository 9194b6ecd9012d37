"""Texts that users write, bent out of shape: each is understood or refused with words, soon, and in little memory."""

from __future__ import annotations

import json
import random
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.checkpoint.storage import seal, unseal
from penstock.errors import PenstockError
from penstock.feedback.log import message
from penstock.pattern.duration import parse_duration
from penstock.pattern.feedback import Feedback
from penstock.pattern.pattern import Pattern
from penstock.pattern.schema import Schema
from penstock.portal.script import load
from penstock.sql.aggregation import Aggregation
from penstock.sql.expression import Expression

SCHEMA = Schema.parse("ts timestamp, day date, n int, big bigint, v double, m decimal(10,2), s string, b boolean", "ts")
EXAMPLES = {
    "duration": ["30 s", "2 min", "1 h 30 min", "500 ms", "1.5 h", "7 days", "1 week", "0 s", "1 month", "-3 s"],
    "schema": ["ts timestamp, segment int", "`wind speed` decimal(5,1), n int", "a: string, b: date", "x double"],
    "pattern": [
        "[*, *, *, *, *, *, *, *]",
        "[< '2026-01-01 10:00', *, 4, *, *, *, *, *]",
        "[*, '2026-01-01', {1, 2}, [1, 5), >= 1.5, (1.25, 2.5], 'O''Brien', true]",
    ],
    "expression": [
        "n > 40 AND s LIKE 'a%'",
        "CASE WHEN b THEN v / 2 ELSE NULL END",
        "coalesce(upper(s), 'x') || 'y'",
        "date_trunc('hour', ts) < timestamp '2026-01-01 10:00:00'",
        "cast(n AS bigint) % 7 IN (1, 2, 3)",
        "v BETWEEN 1 AND 2.5e3 OR day = date '2026-02-28'",
        "substring(s, 1, 3) RLIKE '^a+'",
        "-(n + big) * m",
    ],
    "aggregate": ["count(*)", "sum(v) / count(n)", "max(ts)", "avg(m)", "count(DISTINCT s)", "min_by(s, v)"],
    "message": [
        '{"text": "not [*, *, 1, *, *, *, *, *]", "node": "select-1"}',
        '{"text": "now [*, *, *, *, *, *, *, *]", "node": null}',
    ],
    "script": [
        "import penstock as ps\nquery = ps.stream('s', 'n int, ts timestamp', time='ts').read_parquet('in')\n",
        "import penstock as ps\nquery = ps.generate(rows=10).window('1 s').agg(n='count(*)')\nsink = ps.memory()\n",
    ],
}
PIECES = [
    "", " ", ",", "(", ")", "[", "]", "{", "}", "'", '"', "`", "\\", ";", "--", "/*", "*", "%", "\0", "\n", "\ud800",
    "é", "\u202e", "٣", "𝟙", "NULL", "NaN", "-", "1e999", "9" * 30, "0x1", "not ", "AND", "SELECT", "::", ":", "<=",
    "≥", "..", "2026-02-30", "'9999-12-31'", "(((((", "))))", "count(", "map(", "array(", "interval '1' month", "ts",
    "n", "nothing", "@", "$1", "?", "\t", "\ufeff", "=", "true", "days", "µs",
    r"'\ud800'", r"\udc00",
]  # fmt: skip


def bent(rng: random.Random, examples: list[str]) -> str:
    """A text near one that is right."""
    text = rng.choice(examples)
    for _ in range(rng.randrange(5)):
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        match rng.randrange(6):
            case 0:
                text = text[:i] + text[j:]
            case 1:
                text = text[:i] + rng.choice(PIECES) + text[i:]
            case 2:
                text = text[:i] + rng.choice(PIECES) + text[j:]
            case 3:
                other = rng.choice(examples)
                text = text[:i] + other[rng.randrange(len(other)) :]
            case 4:
                text = text[:j] + text[i:j] * rng.choice([1, 2, 20]) + text[j:]
            case _:
                text = text[:i] + text[i:j][::-1] + text[j:]
        text = text[:5_000]
    return text


def taken(kind: str, text: str, home: Path) -> object:
    match kind:
        case "duration":
            return parse_duration(text)
        case "schema":
            return Schema.parse(text)
        case "pattern":
            return (Pattern.parse(text, SCHEMA), str(Feedback.parse(f"not {text}", SCHEMA)))
        case "expression":
            return Expression.parse(text, SCHEMA, where="select")
        case "aggregate":
            return Aggregation.parse("x", text, SCHEMA, "ts", where="agg", keys=())
        case "message":
            try:
                body = json.loads(text)
            except (ValueError, RecursionError):
                return unseal(text.encode(errors="surrogatepass"), "a message")
            said = message(unseal(seal(body), "a message"))
            return Feedback.parse(said["text"], SCHEMA)
        case _:
            (home / "query.py").write_bytes(text.encode(errors="surrogatepass"))
            return load(str(home / "query.py"))


@contextmanager
def soon(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"not answered within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def search(kind: str, seed: int, count: int, home: Path) -> None:
    rng = random.Random(seed)
    wrong: dict[str, str] = {}
    outcomes: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        text = bent(rng, EXAMPLES[kind])
        try:
            with soon(20):
                taken(kind, text, home)
            outcomes["taken"] += 1
        except PenstockError:
            outcomes["refused"] += 1
        except Exception as error:
            wrong.setdefault(f"{type(error).__name__}: {str(error)[:60]}", text)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    print(f"{kind}: {count:,} texts, seed {seed}: {dict(outcomes)}; memory grew by {grown} MiB")
    assert not wrong, "\n".join(f"{what}\n    {text!r:.300}" for what, text in wrong.items())
    assert grown < 1024
    assert outcomes["refused"] > count // 20, "hardly any was bent enough"
    assert outcomes["taken"] > count // 50, "hardly any was left as it should be"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", EXAMPLES)
def test_five_thousand_texts(home: Path, kind: str) -> None:
    search(kind, 10, 5_000 // len(EXAMPLES) + 1, home)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_hundred_thousand_texts(home: Path, kind: str, tried: Callable[[str], None]) -> None:
    count = 100_000 // len(EXAMPLES) + 1
    search(kind, 1_000, count, home)
    tried(f"{count:,} texts")
