"""Files that are replaced whole, whatever else goes on; locks on names."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kofa.storage import atomic as module
from kofa.storage.atomic import atomic_write, lock_path, locked, remove_leftovers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kofa"


def names(path):
    return sorted(found.name for found in path.parent.iterdir())


def dies(code, path):
    """Run code in a process that ends in the middle of it, as by kill -9."""
    code = f"from pathlib import Path\npath = Path({str(path)!r})\n{code}"
    head = "import os\nfrom kofa.storage.atomic import atomic_write, lock_path, locked\n"
    assert subprocess.run([sys.executable, "-c", head + code], check=False).returncode == 7


# ---------------------------------------------------------------- whole or not at all


def test_a_file_takes_its_place_whole(path):
    path.write_text("old", encoding="utf-8")
    with atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert names(path) == ["model.kofa"]


@pytest.mark.parametrize("name", ["x" * 250, "é" * 120])
def test_long_names(name, tmp_path):
    with atomic_write(tmp_path / name) as part:
        part.write_text("new", encoding="utf-8")
    assert names(tmp_path / name) == [name]


def test_two_writers_do_not_disturb_each_other(path):
    with atomic_write(path) as first:
        first.write_text("first", encoding="utf-8")
        with atomic_write(path) as second:
            second.write_text("second", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "second"
    assert path.read_text(encoding="utf-8") == "first"
    assert names(path) == ["model.kofa"]


def test_what_is_being_written_is_not_cleared(path):
    with atomic_write(path) as part:
        part.write_text("half of", encoding="utf-8")
        remove_leftovers(path)
        assert part.read_text(encoding="utf-8") == "half of"
    assert path.read_text(encoding="utf-8") == "half of"


def test_what_a_killed_process_left_is_cleared_by_the_next(path):
    dies("with atomic_write(path) as part:\n part.write_text('half of')\n os._exit(7)", path)
    assert len(names(path)) == 2  # the file and its lock
    other = path.with_name(".other.kofa.0123456789ab.tmp")
    other.write_text("not ours", encoding="utf-8")
    with atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
    assert names(path) == [other.name, "model.kofa"]


def test_nothing_is_cleared_where_there_are_no_locks(path, monkeypatch):
    """Nobody can tell there whether a file is still being written."""
    monkeypatch.setattr(module, "_lock", lambda *_: None)
    left = path.with_name(".model.kofa.0123456789ab.tmp")
    left.write_text("half of", encoding="utf-8")
    with atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
    assert names(path) == [left.name, "model.kofa"]


def test_a_reader_that_keeps_the_file_is_waited_for(path, monkeypatch):
    """Windows refuses to replace a file that is open."""
    tries, move = [], Path.replace

    def refusing(part, target):
        tries.append(part)
        if len(tries) < 3:
            raise PermissionError(13, "in use")
        return move(part, target)

    monkeypatch.setattr(module, "_PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(Path, "replace", refusing)
    with atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "new"
    assert len(tries) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="rights are the folder's")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_the_rights_of_a_file_outlive_it(mode, path):
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    with atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
        assert not part.stat().st_mode & ~mode & 0o077  # nobody reads it meanwhile either
    assert stat.S_IMODE(path.stat().st_mode) == mode


# ---------------------------------------------------------------- locks


def test_a_lock_is_held_once_and_leaves_nothing(path):
    lock = lock_path(path)
    with locked(lock) as first, locked(lock) as second:
        assert (first, second) == (True, False)
    assert names(path) == []
    with locked(lock) as again:
        assert again


def test_a_lock_that_is_not_ours_is_left_alone(path):
    lock = lock_path(path)
    with locked(lock):
        with locked(lock):
            pass
        with locked(lock) as third:
            assert third is False


def test_the_lock_of_a_dead_process_does_not_block(path):
    dies("with locked(lock_path(path)) as ours:\n assert ours\n os._exit(7)", path)
    assert names(path) == [".model.kofa.lock"]
    with locked(lock_path(path)) as ours:
        assert ours
    assert names(path) == []


def test_another_process_sees_the_lock(path):
    with locked(lock_path(path)):
        dies("with locked(lock_path(path)) as ours:\n os._exit(7 if ours is False else 1)", path)


def test_a_lock_whose_file_was_just_removed_is_taken_anew(path, monkeypatch):
    """Its owner may end between our opening the file and our locking it."""
    lock, take, seen = lock_path(path), module._lock, []

    def slow(descriptor, wait):
        if not seen:
            os.unlink(lock)
        seen.append(descriptor)
        return take(descriptor, wait)

    monkeypatch.setattr(module, "_lock", slow)
    with locked(lock) as ours, locked(lock) as second:
        assert ours
        assert second is False
    assert len(seen) == 3


@pytest.mark.parametrize("one", ["a" * 230 + "1", "model.kofa"])
def test_locks_of_different_names_are_different(one, tmp_path):
    other = one[:-1] + "2"
    with locked(lock_path(tmp_path / one)) as first, locked(lock_path(tmp_path / other)) as second:
        assert (first, second) == (True, True)
