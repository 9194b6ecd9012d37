"""CSV and JSON lines: a bad row spoils itself only, and the cut into byte ranges changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.source import open_reader, read
from penstock.engine.source.formats.textcast import _plain, _tolerant
from penstock.errors import SchemaError, UnreadableError
from penstock.operators.source.operator import Source
from penstock.pattern.schema import Schema
from penstock.plan.promise import Files, InBand

SCHEMA = Schema.parse("ts timestamp, id int, v double, s string", time="ts")


def load(
    folder: Path, fmt: Any, rows: int | None = None, schema: Schema = SCHEMA, in_band: bool = False, **options: Any
):  # type: ignore[no-untyped-def]
    promises = (InBand(),) if in_band else ()
    src = Source(
        (), schema, name="t", reader=Files(str(folder), fmt, options=tuple(options.items())), promises=promises
    )
    reader = open_reader(src)
    good: list[dict[str, Any]] = []
    bad: list[tuple[int, str]] = []
    points: list[tuple[int, str]] = []
    while splits := reader.plan(rows, None, 2, settled=True):
        for split in splits:
            batch = read(split, schema, None, promises, options)
            assert batch.table.schema == schema.arrow
            points += [(len(good) + i, str(p)) for i, p in batch.punctuations]
            good += batch.table.to_pylist()
            bad += [(m["row"], m["event"]) for m in batch.malformed.to_pylist()]
    return good, sorted(bad), points


GOOD = {"ts": "2020-01-01T10:00:00", "id": 1, "v": 2.5, "s": "a"}
BAD_JSON = [
    "null",
    "[1]",
    "{",
    '{"ts": "x"}',
    '{"id": 1}',
    '{"ts": "2020-01-01", "id": 1.5}',
    '{"ts": "2020-01-01"} {}',
    '{"ts": "2020-01-01", "id": 99999999999}',
    '{"ts": "2020-01-01", "v": 1e999}',
    "nonsense",
]
BAD_CSV = [
    "x,1,2.5,a",
    ",1,2.5,a",
    "2020-01-01,1.5,2,a",
    "2020-01-01,1",
    "2020-01-01,1,2,3,4",
    "2020-01-01,1,1e999,a",
    "2020-02-30,1,1,a",
]


@given(
    lines=st.lists(st.one_of(st.none(), st.sampled_from(BAD_JSON)), min_size=1, max_size=12),
    rows=st.one_of(st.none(), st.integers(1, 4)),
    end=st.booleans(),
)
def test_bad_json_lines_are_set_aside(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str | None], rows: int | None, end: bool
) -> None:
    folder = tmp_path_factory.mktemp("in")
    texts = [json.dumps({**GOOD, "id": i}) if line is None else line for i, line in enumerate(lines)]
    (folder / "a.json").write_text("\n".join(texts) + ("\n" if end else ""))
    good, bad, _ = load(folder, "json", rows)
    assert [g["id"] for g in good] == [i for i, line in enumerate(lines) if line is None]
    assert [row for row, _ in bad] == [i for i, line in enumerate(lines) if line is not None]
    for row, event in bad:
        held = json.loads(event)
        assert held == texts[row] or held == json.loads(texts[row])


@given(
    lines=st.lists(st.one_of(st.none(), st.sampled_from(BAD_CSV)), min_size=1, max_size=12),
    rows=st.one_of(st.none(), st.integers(1, 4)),
    end=st.booleans(),
)
def test_bad_csv_rows_are_set_aside(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str | None], rows: int | None, end: bool
) -> None:
    folder = tmp_path_factory.mktemp("in")
    texts = [f"2020-01-01T10:00:00,{i},2.5,a" if line is None else line for i, line in enumerate(lines)]
    (folder / "a.csv").write_text("ts,id,v,s\n" + "\n".join(texts) + ("\n" if end else ""))
    good, bad, _ = load(folder, "csv", rows)
    assert [g["id"] for g in good] == [i for i, line in enumerate(lines) if line is None]
    assert [row for row, _ in bad] == [i for i, line in enumerate(lines) if line is not None]


_TEXTS = st.one_of(
    st.sampled_from(["", "0", "-1", "+5", " 7 ", "0x1F", "1.5", "1e3", "1e400", "nan", "inf", "true", "2020-01-01",
                     "2020-01-01 10", "2020-01-01 10:00", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00.5+02:00",
                     "2020-02-30", "1.50", "1.005", "99999999999", "1_000", ".5", "5.", "2020-01-01Z"]),
    st.floats().map(str), st.integers().map(str), st.datetimes().map(str),
    st.datetimes().map(lambda d: d.isoformat() + "Z"),
)  # fmt: skip


@given(
    st.lists(st.one_of(st.none(), _TEXTS), min_size=1, max_size=4),
    st.sampled_from(["int", "bigint", "double", "float", "decimal(6,2)", "date", "timestamp"]),
)
def test_the_fast_conversion_agrees_with_the_exact_one(texts: list[str | None], kind: str) -> None:
    schema = Schema.parse(f"x {kind}")
    column = pa.chunked_array([pa.array(texts, pa.string())])
    fast = _plain(column, schema.type_of("x"))
    if fast is None:
        return
    exact = _tolerant({"x": column}, schema)["x"]
    assert fast.cast(pa.string()).to_pylist() == exact.cast(pa.string()).to_pylist()


def test_an_object_over_two_lines_does_not_hide_two_objects_on_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"ts": "2020-01-01", "z":\n{"x": 1}}\n{"ts": "2020-01-01"}{"ts": "2020-01-02"}\n')
    good, bad, _ = load(tmp_path, "json")
    assert good == []
    assert [row for row, _ in bad] == [0, 1, 2]


def test_columns_in_any_order_nulls_quotes_and_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        b'\xef\xbb\xbfs;extra;id;ts;v\r\n"a;b";1;;2020-01-01T00:00:00Z;\r\n;2;3;2020-01-01T02:00:00+02:00;1\r\n'
        b'"";2;4;2020-01-01;1\r\n\xff;2;5;2020-01-01;1\r\n'
    )
    good, bad, _ = load(tmp_path, "csv", delimiter=";")
    assert [(g["s"], g["id"], g["v"]) for g in good] == [("a;b", None, None), (None, 3, 1.0), ("", 4, 1.0)]
    assert good[0]["ts"] == good[1]["ts"] == good[2]["ts"]
    assert [row for row, _ in bad] == [3]


def test_multiline_csv_is_never_cut(tmp_path: Path) -> None:
    text = "ts,id,v,s\n" + "".join(f'2020-01-01,{i},1,"two\nlines"\n' for i in range(20))
    (tmp_path / "a.csv").write_text(text)
    good, bad, _ = load(tmp_path, "csv", rows=3, multiline=True)
    assert len(good) == 20
    assert good[7]["s"] == "two\nlines"
    assert bad == []


def test_csv_without_header_and_missing_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("2020-01-01,1,2,x\n2020-01-02,2,2,x\n")
    good, _, _ = load(tmp_path, "csv", header=False)
    assert [g["id"] for g in good] == [1, 2]
    with pytest.raises(SchemaError, match="no column 'ts'"):
        load(tmp_path, "csv")


@pytest.mark.parametrize("rows", [None, 1])
def test_punctuation_in_band(tmp_path: Path, rows: int | None) -> None:
    lines = [json.dumps(GOOD), json.dumps({"punctuation": "[*, 1, *, *]"}), json.dumps(GOOD)]
    (tmp_path / "a.json").write_text("\n".join(lines))
    good, bad, points = load(tmp_path, "json", rows, in_band=True)
    assert (len(good), bad, points) == (2, [], [(1, "[*, 1, *, *]")])
    (tmp_path / "c").mkdir()
    (tmp_path / "c/a.csv").write_text(
        'ts,id,v,s,punctuation\n2020-01-01,1,1,a,\n,,,,"[*, 1, *, *]"\n2020-01-01,2,1,a,\n'
    )
    good, bad, points = load(tmp_path / "c", "csv", rows, in_band=True)
    assert (len(good), bad, points) == (2, [], [(1, "[*, 1, *, *]")])


def test_json_takes_other_types_as_written(tmp_path: Path) -> None:
    schema = Schema.parse("d date, m decimal(6,2), b boolean, f float, s string")
    rows = [
        {"d": "2020-01-01", "m": "1.50", "b": True, "f": 0.5, "s": "x"},
        {"d": "2020-01-01", "m": 1.5, "b": False, "f": None, "s": 3},
        {"d": 18262, "m": 1, "b": True},
        {"m": 1.005},
        {},
    ]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, rows)))
    good, bad, _ = load(tmp_path, "json", schema=schema)
    assert [str(g["m"]) for g in good] == ["1.50", "1.50", "None"]
    assert good[1]["s"] == "3"
    assert [row for row, _ in bad] == [2, 3]


@pytest.mark.parametrize(("other", "written"), [(";", '";"'), ("\t", r'"\t"'), ("|", '"|"')])
def test_another_delimiter_is_told(tmp_path: Path, other: str, written: str) -> None:
    (tmp_path / "a.csv").write_text(f'ts{other}"id"{other}v{other}s{other}more\n')
    (tmp_path / "a.csv").open("a").write("x\n")
    with pytest.raises(SchemaError, match="no column 'ts'") as caught:
        load(tmp_path, "csv")
    assert f"read_csv(…, delimiter={written})" in (caught.value.hint or "")
    (tmp_path / "a.csv").write_text(f"other{other}id\n1\n")
    with pytest.raises(SchemaError, match="no column 'ts'") as caught:
        load(tmp_path, "csv")
    assert "delimiter" not in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("2026-01-01,1,2.5,x\n2026-01-01,1,2.5,x\n", SchemaError, r"no column 'ts'.*2026-01-01.*header=False"),
        ("ts,id,v,s,id\n2026-01-01,1,2.5,x,2\n", SchemaError, r"has 2 columns 'id'\. Hint: give each"),
        ("\nts,id,v,s\n2026-01-01,1,2.5,x\n", UnreadableError, r"its first line is empty\. Hint: .*name the columns"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=said):
        load(tmp_path, "csv")
