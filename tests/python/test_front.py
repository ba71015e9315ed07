"""layout=front for PnetCDF programs, concatenations and repack --publish as-stored.

PnetCDF programs and concatenations do not know their chunks before the first one is written. Their
files are rearranged when they are closed.
"""

import h5py
import netCDF4
import numpy as np
import pytest
from cli_tools import attributes, data_file, datasets, own_lines, tailrace
from test_cmip7 import assert_checked, assert_chunks, assert_front
from test_pnetcdf import built, run


def raw_chunks(path):
    """Return each dataset's stored chunks by name and offset."""
    found = {}

    def look(name, item):
        if isinstance(item, h5py.Dataset) and item.chunks:
            offsets = [item.id.get_chunk_info(i).chunk_offset
                       for i in range(item.id.get_num_chunks())]
            found[name] = {offset: item.id.read_direct_chunk(offset) for offset in offsets}

    with h5py.File(path, "r") as file:
        file.visititems(look)
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_pnetcdf_program(tmp_path, ranks):
    plain, front = tmp_path / "plain.nc", tmp_path / "front.nc"
    words = built("bin", "pnetcdf", "records_relinked")
    first = run([words, plain], ranks)
    second = run([words, front], ranks, TAILRACE_OPTIONS="layout=front")
    assert first.stdout.replace(str(plain), "") == second.stdout.replace(str(front), "")
    assert_front(front)
    before, after = datasets(plain), datasets(front)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert np.array_equal(values, after[name]), name
    assert not front.with_suffix(".nc.front").exists()
    with netCDF4.Dataset(front) as file, netCDF4.Dataset(plain) as other:
        assert list(file.dimensions) == list(other.dimensions)
        assert list(file.variables) == list(other.variables)
        assert file.ncattrs() == other.ncattrs()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_cmip7_accepts_what_a_pnetcdf_program_writes(tmp_path, ranks):
    """Steps have chunks of 5 MiB; the growing time finally has one chunk."""
    target, plain = tmp_path / "out.nc", tmp_path / "plain.nc"
    words = built("bin", "pnetcdf", "maps_relinked")
    # Time gets several chunks, like after growth since a flush.
    chunks = "tas: chunk=100x90x144; time: chunk=512; time_bnds: chunk=512x2"
    run([words, target, 1100], ranks, TAILRACE_OPTIONS="layout=front; " + chunks)
    run([words, plain, 1100], ranks, TAILRACE_OPTIONS=chunks)
    assert_front(target)
    with h5py.File(target) as file, h5py.File(plain) as other:
        assert file["time"].id.get_num_chunks() == 1 < other["time"].id.get_num_chunks()
        assert file["tas"].id.get_num_chunks() > 1
    assert_chunks(target, "tas")
    before, after = datasets(plain), datasets(target)
    for path, values in before.items():
        assert np.array_equal(values, after[path]), path
    assert_checked(target)


def test_a_failure_leaves_the_file_whole(tmp_path):
    """An object with the name of the new file may belong to another program, so it stays."""
    path = tmp_path / "out.nc"
    (tmp_path / "out.nc.front").mkdir()
    done = run([built("bin", "pnetcdf", "records_relinked"), path], 2, code=None,
               TAILRACE_OPTIONS="layout=front")
    said = " ".join(done.stderr.split())
    assert "is complete, but its metadata cannot be moved to the front" in said
    assert datasets(path)


def test_a_file_of_that_name_stays(tmp_path):
    path, other = tmp_path / "out.nc", tmp_path / "out.nc.front"
    other.write_bytes(b"somebody else's")
    done = run([built("bin", "pnetcdf", "records_relinked"), path], 2, code=None,
               TAILRACE_OPTIONS="layout=front")
    assert "exists" in done.stderr and other.read_bytes() == b"somebody else's"
    assert datasets(path)


def test_a_link_stays_one(tmp_path):
    path = tmp_path / "link.nc"
    path.symlink_to(tmp_path / "real.nc")
    run([built("bin", "pnetcdf", "records_relinked"), path], 2, TAILRACE_OPTIONS="layout=front")
    assert path.is_symlink() and not (tmp_path / "real.nc").is_symlink()
    assert_front(tmp_path / "real.nc")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_concatenation(tmp_path, ranks):
    inputs = []
    for k in range(5):
        inputs.append(tmp_path / f"in{k}.h5")
        with h5py.File(inputs[-1], "w") as file:
            rows = np.arange(1000 * k, 1000 * (k + 1), dtype="f8")
            file.create_dataset("g/a", data=rows, chunks=(128,), maxshape=(None,),
                                compression="gzip", shuffle=True)
            file.create_dataset("b", data=rows[:10].astype("i4"), chunks=(10,), maxshape=(None,))
            file["g"].attrs["k"] = 1
    plain, front = tmp_path / "plain.h5", tmp_path / "front.h5"
    tailrace("concat", *inputs, "-o", plain, ranks=ranks)
    tailrace("concat", *inputs, "-o", front, "--layout", "front", ranks=ranks)
    assert_front(front)
    before, after = datasets(plain), datasets(front)
    assert before.keys() == after.keys() and len(after["g/a"]) == 5000
    assert all(np.array_equal(values, after[name]) for name, values in before.items())
    done = tailrace("concat", *inputs, "-o", plain, "--layout", "front", "--dedup", "--force",
                    code=2, ranks=ranks)
    assert "--layout front cannot be combined with --dedup" in own_lines(done.stderr)[0]
    tailrace("concat", *inputs[:2], "-o", front, "-a", "--layout", "front", ranks=ranks)
    assert_front(front)
    assert len(datasets(front)["g/a"]) == 7000


@pytest.mark.parametrize("ranks", [1, 3])
def test_chunks_as_they_are_stored(tmp_path, ranks):
    """Lossy chunks are copied, too, with the attributes about their bounds and guards."""
    source, stored = data_file("nyx64_s060.h5", tmp_path), tmp_path / "stored.h5"
    tailrace("repack", source, "-o", stored, "--codec", "trz", "--bound", "rel=1e-3", "--guard",
             "sign", "--chunk", "256KiB")
    for layout in ("claimed", "front"):
        target = tmp_path / f"{layout}.h5"
        done = tailrace("repack", stored, "-o", target, "--publish=as-stored", "--layout", layout,
                        ranks=ranks)
        assert raw_chunks(target) == raw_chunks(stored)
        assert "exact" not in done.stdout and " stored " in done.stdout
        tailrace("verify", source, target)
        for name in raw_chunks(stored):
            kept = {key for key in attributes(stored, name) if key.startswith("tailrace_")}
            assert "tailrace_guard" in kept or "tailrace_bound_mode" not in kept
            assert kept <= set(attributes(target, name)), name
    assert_front(tmp_path / "front.h5")
    done = tailrace("repack", stored, "-o", target, "--publish=all", "--force", code=2)
    assert "expected cmip7, cloud or as-stored" in own_lines(done.stderr)[0]
    done = tailrace("repack", stored, "-o", target, "--publish=as-stored", "--chunk", "1MiB",
                    "--force", code=2)
    assert "cannot be combined with --chunk" in own_lines(done.stderr)[0]
    one = next(iter(raw_chunks(stored)))
    tailrace("repack", stored, "-o", target, "--publish=as-stored", "--force", "--field",
             f"{one}:codec=deflate", ranks=ranks)
    chunks, before = raw_chunks(target), raw_chunks(stored)
    assert [name for name in before if chunks[name] != before[name]] == [one]


def test_views_for_a_network_keep_what_is_said_of_bounds(tmp_path):
    """--publish cloud copies chunks that fit, and the attributes about their values."""
    source, stored = data_file("nyx64_s060.h5", tmp_path), tmp_path / "stored.h5"
    tailrace("repack", source, "-o", stored, "--codec", "trz", "--bound", "rel=1e-3")
    tailrace("repack", stored, "-o", tmp_path / "cloud.h5", "--publish=cloud", ranks=2)
    tailrace("verify", source, tmp_path / "cloud.h5")
