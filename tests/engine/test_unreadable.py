"""A file that cannot be read is not overtaken: nothing behind it makes its events late, and no run ends without it."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.checkpoint.fault import Crash, hooked
from penstock.engine.run import Run
from penstock.errors import SourceError, UnreadableError, UserError
from penstock.portal.testing import local_session

FILES, ROWS = 6, 100
LONG_AGO = 1_600_000_000


def fill(folder: Path, files: int = FILES, first: int = 0) -> None:
    """File n holds the times from 100 n on."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(first, first + files):
        ts = list(range(n * ROWS, (n + 1) * ROWS))
        path = folder / f"{n:02}.parquet"
        pq.write_table(pa.table({"ts": ts, "v": [float(t) for t in ts]}), path, row_group_size=25)
        os.utime(path, (LONG_AGO + n, LONG_AGO + n))


def no_footer(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def bad_footer(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-200:-8] = b"\xff" * 192
    path.write_bytes(data)


def bad_page(path: Path) -> None:
    """The footer is whole: only who reads the rows finds out. It is the third of four row groups."""
    at = pq.ParquetFile(path).metadata.row_group(2).column(0).dictionary_page_offset or 0
    data = bytearray(path.read_bytes())
    data[at : at + 60] = b"\xff" * 60
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], None]] = {"no footer": no_footer, "bad footer": bad_footer, "bad page": bad_page}


def damage(path: Path, how: str) -> bytes:
    """Damage a file, long ago; gives back what it was."""
    whole = path.read_bytes()
    DAMAGES[how](path)
    os.utime(path, (LONG_AGO + 3, LONG_AGO + 3))
    return whole


def repair(path: Path, whole: bytes) -> None:
    path.with_suffix(".tmp").write_bytes(whole)
    path.with_suffix(".tmp").rename(path)


def counted(folder: Path, ends: bool = False, **options: Any) -> ps.Stream:
    options = {"order": "name", **options}
    stream = ps.stream("s", "ts bigint, v double", time="ts").read_parquet(str(folder), **options)
    stream = stream.disorder(0)
    return (stream.ends() if ends else stream).window(ROWS).agg(n="count(*)")


def start(query: ps.Stream, home: Path, **options: Any) -> Run:
    given: dict[str, Any] = {"trigger": "available_now", "max_rows": ROWS, **options}
    if "every" in given:
        del given["trigger"]
    return query.start(ps.parquet(str(home / "out")), spark=local_session(), **given)


def results(home: Path) -> dict[int, int]:
    found = [r for p in (home / "out").glob("part-*") for r in pq.read_table(p).to_pylist()]
    assert len({r["window_start"] for r in found}) == len(found)
    return {r["window_start"]: r["n"] for r in sorted(found, key=lambda r: r["window_start"])}


def until(run: Run, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while run.active and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("max_rows", [25, ROWS, None])
def test_a_run_that_goes_on_waits_in_front_of_it(tmp_path: Path, how: str, max_rows: int | None) -> None:
    fill(tmp_path / "in")
    whole = damage(tmp_path / "in/03.parquet", how)
    with start(counted(tmp_path / "in"), tmp_path, every="10 ms", max_rows=max_rows) as run:
        until(run, lambda: bool(run.waiting and run.warnings and results(tmp_path)))
        time.sleep(0.1)
        assert "03.parquet" in run.waiting[0]
        assert [w for w in run.warnings if "03.parquet' cannot be read" in w and "waits for it" in w] == run.warnings
        begun = 50 if (how, max_rows) == ("bad page", 25) else 0  # the first two row groups are good
        assert sum(p.rows_in for p in run.history) == 3 * ROWS + begun
        assert set(results(tmp_path)) == ({0, ROWS, 2 * ROWS} if begun else {0, ROWS})
        if begun:
            return  # so small a file is another one, once it is mended
        repair(tmp_path / "in/03.parquet", whole)
        until(run, lambda: sum(p.rows_in for p in run.history) == FILES * ROWS)
        assert run.waiting == ()
    assert results(tmp_path) == {n * ROWS: ROWS for n in range(FILES - 1)}
    assert run.dead_letters().num_rows == 0


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("trigger", ["available_now", "once"])
@pytest.mark.parametrize("policy", [{}, {"on_unreadable": "fail"}])
def test_a_run_that_ends_by_itself_does_not_end_without_it(
    tmp_path: Path, how: str, trigger: str, policy: dict[str, Any]
) -> None:
    fill(tmp_path / "in")
    whole = damage(tmp_path / "in/03.parquet", how)
    query = counted(tmp_path / "in", ends=True, **policy)
    for _ in range(2):
        with pytest.raises(SourceError, match=r"file '[^']*03\.parquet' cannot be read") as caught:
            start(query, tmp_path, trigger=trigger).wait()
        assert "on_unreadable" in (caught.value.hint or "")
        assert set(results(tmp_path)) <= {0, ROWS}, "nothing is final that the file could change"
    repair(tmp_path / "in/03.parquet", whole)
    run = start(query, tmp_path, trigger=trigger).wait()
    if trigger == "available_now":
        assert results(tmp_path) == {n * ROWS: ROWS for n in range(FILES)}
    assert run.dead_letters().num_rows == 0


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("bounded", [True, False])
def test_it_is_passed_over_if_asked(tmp_path: Path, how: str, bounded: bool) -> None:
    fill(tmp_path / "in")
    damage(tmp_path / "in/03.parquet", how)
    query = counted(tmp_path / "in", ends=bounded, on_unreadable="skip")
    if bounded:
        run = start(query, tmp_path).wait()
        expected = {n * ROWS: ROWS for n in range(FILES) if n != 3}
    else:
        with start(query, tmp_path, every="10 ms") as run:
            until(run, lambda: sum(p.rows_in for p in run.history) == (FILES - 1) * ROWS)
        expected = {n * ROWS: ROWS for n in range(FILES - 1) if n != 3}
    assert results(tmp_path) == expected
    (letter,) = run.dead_letters().to_pylist()
    assert (letter["stream"], letter["reason"], letter["row"]) == ("s", "unreadable", 0)
    assert letter["file"].endswith("03.parquet") and letter["detail"]
    assert run.progress is not None and run.progress.total_dead == {"unreadable": 1}
    assert [w for w in run.warnings if "03.parquet" in w and "passed over" in w]
    # What becomes of it later is nobody's business, and it is not told again.
    fill(tmp_path / "in", 1, 3)
    again = start(query, tmp_path).wait()
    assert again.progress is None and again.dead_letters().num_rows == 1


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("which", [0, 3])
@pytest.mark.parametrize("bounded", [True, False])
def test_it_keeps_its_place_though_it_is_written_anew(tmp_path: Path, how: str, which: int, bounded: bool) -> None:
    """By time of modification it would come last now, and all its events would be late."""
    fill(tmp_path / "in")
    whole = damage(tmp_path / f"in/{which:02}.parquet", how)
    os.utime(tmp_path / f"in/{which:02}.parquet", (LONG_AGO + which, LONG_AGO + which))
    query = counted(tmp_path / "in", order="time")
    if bounded:
        for _ in range(2):
            with pytest.raises(SourceError, match=rf"{which:02}\.parquet"):
                start(query, tmp_path).wait()
    else:
        with start(query, tmp_path, every="10 ms") as run:
            until(run, lambda: bool(run.waiting))
    repair(tmp_path / f"in/{which:02}.parquet", whole)
    run = start(query, tmp_path).wait()
    assert results(tmp_path) == {n * ROWS: ROWS for n in range(FILES - 1)}
    assert run.dead_letters().num_rows == 0


def test_a_young_file_is_not_passed_over_yet(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    no_footer(tmp_path / "in/03.parquet")
    with pytest.raises(SourceError, match=r"03\.parquet.*no footer yet"):
        start(counted(tmp_path / "in", on_unreadable="skip"), tmp_path).wait()
    with start(counted(tmp_path / "in", on_unreadable="fail"), tmp_path, every="10 ms") as run:
        until(run, lambda: bool(run.waiting))
        assert run.active
    assert start(counted(tmp_path / "in", on_unreadable="skip", settle=0), tmp_path).wait().waiting == ()


def test_a_run_that_goes_on_fails_if_asked(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    damage(tmp_path / "in/03.parquet", "bad footer")
    run = start(counted(tmp_path / "in", on_unreadable="fail"), tmp_path, every="10 ms")
    with pytest.raises(SourceError, match=r"03\.parquet"):
        run.wait(60)


def test_the_rest_of_a_file_is_passed_over(tmp_path: Path) -> None:
    """Half of it was read in an epoch of its own before the damage came to light."""
    fill(tmp_path / "in", 2)
    bad_page(tmp_path / "in/00.parquet")
    os.utime(tmp_path / "in/00.parquet", (LONG_AGO, LONG_AGO))
    run = start(counted(tmp_path / "in", ends=True, on_unreadable="skip"), tmp_path, max_rows=50).wait()
    assert results(tmp_path) == {0: 50, ROWS: ROWS}
    assert run.dead_letters().select(["reason", "row"]).to_pylist() == [{"reason": "unreadable", "row": 50}]


def test_the_rest_of_a_file_is_read_when_it_is_mended(tmp_path: Path) -> None:
    """Of a large file the beginning and the footer show that it is still the one of which a half was read."""
    (tmp_path / "in").mkdir()
    path, size = tmp_path / "in/00.parquet", 10_000
    noise = random.Random(1)
    table = pa.table({"ts": list(range(4 * size)), "v": [noise.random() for _ in range(4 * size)]})
    pq.write_table(table, path, row_group_size=size)
    whole = path.read_bytes()
    bad_page(path)
    query = counted(tmp_path / "in", ends=True)
    with pytest.raises(SourceError, match=r"00\.parquet' cannot be read"):
        start(query, tmp_path, max_rows=size).wait()
    repair(path, whole)
    run = start(query, tmp_path, max_rows=size).wait()
    assert sum(results(tmp_path).values()) == 4 * size
    assert run.dead_letters().num_rows == 0 and sum(p.rows_in for p in run.history) == 2 * size


def test_other_partitions_go_on_but_time_does_not(tmp_path: Path) -> None:
    fill(tmp_path / "in/a")
    fill(tmp_path / "in/b")
    whole = damage(tmp_path / "in/a/03.parquet", "bad page")
    query = counted(tmp_path / "in", partitions="directory")
    with start(query, tmp_path, every="10 ms") as run:
        until(run, lambda: sum(p.rows_in for p in run.history) == (3 + FILES) * ROWS)
        assert set(results(tmp_path)) == {0, ROWS}
        repair(tmp_path / "in/a/03.parquet", whole)
        until(run, lambda: sum(p.rows_in for p in run.history) == 2 * FILES * ROWS)
    assert results(tmp_path) == {n * ROWS: 2 * ROWS for n in range(FILES - 1)}
    assert run.dead_letters().num_rows == 0


def test_where_a_promise_is_about_the_whole_source_all_partitions_wait(tmp_path: Path) -> None:
    for part in "ab":
        (tmp_path / "in" / part).mkdir(parents=True)
        for n in range(4):
            table = pa.table({"ts": [n, n], "k": ["x", "y"]})
            pq.write_table(table, tmp_path / "in" / part / f"{n:02}.parquet")
    whole = damage(tmp_path / "in/a/01.parquet", "no footer")
    stream = ps.stream("s", "ts bigint, k string", time="ts")
    stream = stream.read_parquet(str(tmp_path / "in"), order="name", partitions="directory")
    query = stream.complete_when(["x", "y"], on="k").window(1).agg(n="count(*)")
    with start(query, tmp_path, every="10 ms", max_rows=2) as run:
        until(run, lambda: len(run.history) == 2)
        time.sleep(0.1)
        assert sum(p.rows_in for p in run.history) == 4
        repair(tmp_path / "in/a/01.parquet", whole)
        until(run, lambda: sum(p.rows_in for p in run.history) == 16)
    assert run.dead_letters().num_rows == 0


def test_without_promises_of_order_the_others_are_read(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    whole = damage(tmp_path / "in/03.parquet", "bad page")
    query = ps.stream("s", "ts bigint, v double").read_parquet(str(tmp_path / "in")).where("v >= 0")
    with start(query, tmp_path, every="10 ms") as run:
        until(run, lambda: sum(p.rows_in for p in run.history) == (FILES - 1) * ROWS)
        repair(tmp_path / "in/03.parquet", whole)
        until(run, lambda: sum(p.rows_in for p in run.history) == FILES * ROWS)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text_on_a_bad_disk_obeys_too(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.source.formats import text

    (tmp_path / "in").mkdir()
    for n in range(4):
        path = tmp_path / f"in/{n}.{kind}"
        path.write_text(f"ts,v\n{n},1.0\n" if kind == "csv" else f'{{"ts": {n}, "v": 1.0}}\n')
        os.utime(path, (LONG_AGO + n, LONG_AGO + n))
    whole = text._bytes

    def broken(split: Any) -> bytes:
        if split.path.endswith(f"2.{kind}"):
            raise OSError(5, "Input/output error")
        return whole(split)

    monkeypatch.setattr(text, "_bytes", broken)
    declared = ps.stream("s", "ts bigint, v double", time="ts")
    read = declared.read_csv if kind == "csv" else declared.read_json

    def query(**options: Any) -> ps.Stream:
        return read(str(tmp_path / "in"), **options).disorder(0).ends().window(1).agg(n="count(*)")

    with pytest.raises(SourceError, match=rf"2\.{kind}' cannot be read: .*Input/output error"):
        start(query(), tmp_path).wait()
    run = start(query(on_unreadable="skip"), tmp_path / "other").wait()
    assert results(tmp_path / "other") == {0: 1, 1: 1, 3: 1}
    assert run.dead_letters()["reason"].to_pylist() == ["unreadable"]


@pytest.mark.parametrize("policy", ["wait", "skip"])
def test_a_bad_moment_of_the_disk_passes(tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file does not change: it can be read again, and it is."""
    from penstock.engine.source import unreadable
    from penstock.engine.tasks import scan

    fill(tmp_path / "in")
    failures = 3 if policy == "wait" else 1
    whole = scan.read

    def unsteady(split: Any, *rest: Any) -> Any:
        nonlocal failures
        if split.path.endswith("03.parquet") and failures:
            failures -= 1
            raise UnreadableError(split.stream, split.path, split.size, split.mtime_ns, "timed out")
        return whole(split, *rest)

    monkeypatch.setattr(scan, "read", unsteady)
    monkeypatch.setattr(unreadable, "RETRY", 0.2)
    with start(counted(tmp_path / "in", on_unreadable=policy), tmp_path, every="10 ms") as run:
        until(run, lambda: sum(p.rows_in for p in run.history) == FILES * ROWS)
    assert (failures, run.dead_letters().num_rows) == (0, 0)


def test_text_that_is_still_written_holds_the_others_back(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(3):
        (tmp_path / f"in/{n}.csv").write_text(f"ts,v\n{n},1.0\n")
        os.utime(tmp_path / f"in/{n}.csv", (LONG_AGO, LONG_AGO))
    os.utime(tmp_path / "in/1.csv")
    stream = ps.stream("s", "ts bigint, v double", time="ts")
    query = stream.read_csv(str(tmp_path / "in"), order="name", settle=0.3).disorder(0).where("v > 0")
    with start(query, tmp_path, every="10 ms") as run:
        until(run, lambda: sum(p.rows_in for p in run.history) == 3)
    assert run.dead_letters().num_rows == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_waited_for(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    (tmp_path / "in/03.parquet").chmod(0)
    with start(counted(tmp_path / "in"), tmp_path, every="10 ms") as run:
        until(run, lambda: bool(run.waiting))
        assert "Permission denied" in run.waiting[0]
        (tmp_path / "in/03.parquet").chmod(0o600)
        until(run, lambda: sum(p.rows_in for p in run.history) == FILES * ROWS)


def test_a_file_that_vanishes_before_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.source import files

    fill(tmp_path / "in")
    whole = files.parquet_footer

    def late(source: Any, file: Any) -> Any:
        if file.name == "03.parquet":
            Path(file.address).unlink(missing_ok=True)
        return whole(source, file)

    monkeypatch.setattr(files, "parquet_footer", late)
    run = start(counted(tmp_path / "in", ends=True), tmp_path).wait()
    assert run.warnings == ["stream 's': file '03.parquet' vanished before it was read"]
    assert sum(results(tmp_path).values()) == (FILES - 1) * ROWS


def test_a_file_that_vanishes_while_it_waits_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "in")
    no_footer(tmp_path / "in/03.parquet")
    with start(counted(tmp_path / "in"), tmp_path, every="10 ms") as run:
        until(run, lambda: bool(run.waiting))
        (tmp_path / "in/03.parquet").unlink()
        until(run, lambda: sum(p.rows_in for p in run.history) == (FILES - 1) * ROWS)
    assert run.warnings == ["stream 's': file '03.parquet' vanished before it was read"]


def test_another_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="on_unreadable='ignore'") as caught:
        ps.stream("s", "ts bigint").read_csv(str(tmp_path), on_unreadable="ignore")
    assert caught.value.hint == "'wait', 'fail' or 'skip'"


@pytest.mark.parametrize("seed", range(8))
def test_whatever_crashes_the_outcome_is_the_same(tmp_path: Path, seed: int) -> None:
    """Files damaged at random, the plug pulled at random, with and without overlap; then repaired or passed over."""
    rng = random.Random(seed)
    policy = rng.choice(["wait", "skip"])
    fill(tmp_path / "in")
    broken = {
        tmp_path / f"in/{n:02}.parquet": rng.choice(list(DAMAGES)) for n in rng.sample(range(FILES), rng.choice([1, 2]))
    }
    wholes = {path: damage(path, how) for path, how in broken.items()}
    query = counted(tmp_path / "in", ends=True, on_unreadable=policy)
    settings = {"max_rows": rng.choice([ROWS, 2 * ROWS, None]), "fuse_below": rng.choice([0, 1 << 20])}
    settings["overlap"] = rng.random() < 0.7
    for attempt in range(60):
        left = rng.randint(1, 40) if attempt < 40 else 10_000

        def pull(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash(point)

        if wholes and policy == "wait" and rng.random() < 0.2:
            repair(*wholes.popitem())
        try:
            with hooked(pull):
                run = start(query, tmp_path, **settings).wait()
            break
        except Crash:
            continue
        except SourceError as error:
            if policy != "wait" or not any(str(path) in str(error) for path in wholes):
                raise
    lost = {int(p.stem) for p in broken} if policy == "skip" else set()
    expected = {n * ROWS: ROWS for n in range(FILES) if n not in lost}
    assert results(tmp_path) == expected
    assert Counter(run.dead_letters()["reason"].to_pylist()) == Counter({"unreadable": len(lost)} if lost else {})


def test_workers_tell_which_file_it_was(tmp_path: Path, spark: Any) -> None:
    """In processes of their own, with epochs that overlap."""
    fill(tmp_path / "in")
    damage(tmp_path / "in/03.parquet", "bad page")
    query = counted(tmp_path / "in", ends=True, on_unreadable="skip")
    options = {"trigger": "available_now", "max_rows": ROWS, "fuse_below": 0, "spark": spark}
    run = query.start(ps.parquet(str(tmp_path / "out")), **options).wait()
    assert results(tmp_path) == {n * ROWS: ROWS for n in range(FILES) if n != 3}
    assert run.dead_letters()["reason"].to_pylist() == ["unreadable"]
    with pytest.raises(SourceError, match=r"03\.parquet' cannot be read"):
        counted(tmp_path / "in").start(ps.parquet(str(tmp_path / "other")), **options).wait()
