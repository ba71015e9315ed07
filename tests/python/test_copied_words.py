"""What a copy says of its source: all where chunks are copied, what is said of values where these
are encoded anew, and nothing of bounds and guards that does not hold there.
"""

import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import attributes, datasets, numbers, smooth, tailrace

#: Of values, not of how they are encoded.
OF_VALUES = {"tailrace_bound_mode", "tailrace_bound_asked", "tailrace_absolute_bound",
             "tailrace_max_error", "tailrace_guard"}
NOTE = '{"lossless": "datasets without tailrace_codec", "version": "0.0.1"}'


def said(path, name):
    return {key: value.decode() if isinstance(value, bytes) else value
            for key, value in attributes(path, name).items() if key.startswith("tailrace_")}


def of_values(words):
    return {key: value for key, value in words.items() if key in OF_VALUES}


@pytest.fixture(scope="module", name="exact")
def exact_file(tmp_path_factory):
    """Fields of two lengths, and a mask."""
    path = tmp_path_factory.mktemp("exact") / "exact.h5"
    with h5py.File(path, "w") as file:
        for k, name in enumerate(("t", "u")):
            file[name] = smooth((16, 48, 64), k) - 1
        file["mask"] = (np.indices((48, 64)).sum(0) % 3 == 0).astype("u1")
        file["text"] = "no field"
    return path


@pytest.fixture(scope="module", name="guarded")
def guarded_file(exact, tmp_path_factory):
    path = tmp_path_factory.mktemp("guarded") / "guarded.h5"
    tailrace("repack", exact, "-o", path, "--codec", "trz", "--bound", "abs=0.01", "--chunk",
             "4x24x64", "--guard", "sign", "--field",
             "t:guard=sign+sum+monotone=0+region=/mask:0.001+region=*x0..8x*:0.002")
    return path


def as_others_store_it(path, exact):
    """Lossy values in forms whose chunks, if any, cannot be copied; the words stay with them."""
    lossy = path.with_name("lossy.h5")
    tailrace("repack", exact, "-o", lossy, "--codec", "portable", "--bound", "abs=0.01",
             "--verify", "on")
    with h5py.File(lossy) as source, h5py.File(path, "w") as file:
        values = source["t"][()]
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((4096,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, space, compact)
        file["compact"][...] = values.ravel()[:4096]
        file["contiguous"] = values
        file.create_dataset("swapped", data=values.astype(">f4"), chunks=(4, 24, 64),
                            compression="gzip")
        file.create_dataset("chunked", data=values, chunks=(4, 24, 64), compression="gzip")
        for name in list(file):
            for key, value in source["t"].attrs.items():
                if key.startswith("tailrace_"):
                    file[name].attrs[key] = value
        file["plain"] = values.astype("f8")
        file["text"] = "no field"
        file["text"].attrs["tailrace_of_others"] = 1
        file.attrs["tailrace_file"] = np.bytes_(NOTE)
    return lossy


@pytest.mark.parametrize("layout", ["claimed", "front"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_what_cannot_be_copied_keeps_its_words(exact, tmp_path, ranks, layout):
    source, copy = tmp_path / "source.h5", tmp_path / "copy.h5"
    as_others_store_it(source, exact)
    tailrace("repack", source, "-o", copy, "--as-stored", "--layout", layout, ranks=ranks)
    before, after = datasets(source), datasets(copy)
    for name in ("compact", "contiguous", "swapped", "chunked", "plain"):
        assert np.array_equal(before[name], after[name]), name
    with h5py.File(copy) as file:
        for name in ("compact", "contiguous", "swapped", "chunked"):
            words = said(copy, name)
            assert of_values(words) == of_values(said(source, name)), name
            assert words["tailrace_bound_mode"] == "abs" and "tailrace_max_error" in words
            # How it is encoded is said as it is now.
            filters = [file[name].id.get_create_plist().get_filter(i)[0] for i in range(
                file[name].id.get_create_plist().get_nfilters())]
            codec = {"chunked": "portable"}.get(name, "deflate" if filters else "none")
            assert words["tailrace_codec"] == codec, name
        assert said(copy, "plain") == {}
        # What says nothing is exact, as before.
        assert file.attrs["tailrace_file"].decode() == NOTE
        assert file["text"].attrs["tailrace_of_others"] == 1
    listed = {field["path"]: field for field in numbers("info", copy)["fields"]}
    assert listed["/contiguous"]["absolute_bound"] == listed["/swapped"]["absolute_bound"] == 0.01


def test_a_note_on_what_says_nothing_ends_where_it_would_be_wrong(tmp_path):
    source, copy = tmp_path / "source.h5", tmp_path / "copy.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("rounded", data=smooth((64, 64)).astype(">f4"), chunks=(32, 64),
                            scaleoffset=2)
        file.attrs["tailrace_file"] = np.bytes_(NOTE)
    tailrace("repack", source, "-o", copy, "--as-stored")
    with h5py.File(copy) as file:
        assert file["rounded"].compression == "gzip"
        assert "tailrace_file" not in file.attrs


@pytest.mark.parametrize("ranks", [1, 2])
def test_masks_of_guards_go_with_what_is_said(exact, guarded, tmp_path, ranks):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    tailrace("repack", guarded, "-o", whole, "--as-stored", ranks=ranks)
    guard = said(guarded, "t")["tailrace_guard"]
    assert "region=/mask:0.001" in guard
    assert said(whole, "t") == said(guarded, "t") and said(whole, "u") == said(guarded, "u")
    tailrace("verify", exact, whole)
    done = tailrace("repack", guarded, "-o", part, "--as-stored", "--only", "t", ranks=ranks)
    words = said(part, "t")
    assert words["tailrace_guard"] == "sign+sum+monotone=0+region=*x0..8x*:0.002"
    assert {**words, "tailrace_guard": guard} == said(guarded, "t")
    assert 'field "/t": its guard=' in done.stderr + done.stdout
    tailrace("verify", exact, part, "--only", "t")


def test_a_guard_that_was_a_mask_alone_goes_whole(exact, tmp_path):
    source, part = tmp_path / "source.h5", tmp_path / "part.h5"
    tailrace("repack", exact, "-o", source, "--codec", "trz", "--bound", "abs=0.01", "--field",
             "t:guard=region=/mask:0.001")
    tailrace("repack", source, "-o", part, "--as-stored", "--exclude", "mask")
    assert "tailrace_guard" not in said(part, "t")
    assert said(part, "t")["tailrace_absolute_bound"] == 0.01
    tailrace("verify", exact, part, "--exclude", "mask")


@pytest.mark.parametrize("ranks", [1, 2])
def test_guards_of_chunks_end_with_these(exact, guarded, tmp_path, ranks):
    """--cloud makes other chunks of small ones, with the same values."""
    cloud = tmp_path / "cloud.h5"
    tailrace("repack", guarded, "-o", cloud, "--cloud", ranks=ranks)
    words = said(cloud, "t")
    assert words["tailrace_guard"] == "sign+region=*x0..8x*:0.002+region=/mask:0.001"
    assert words["tailrace_codec"] == "deflate" and words["tailrace_bound_mode"] == "abs"
    assert of_values(said(cloud, "u")) == of_values(said(guarded, "u"))
    tailrace("verify", exact, cloud)
    # Whoever asks for a loss says so, and nothing of the source's.
    tailrace("repack", guarded, "-o", cloud, "--cloud", "--force", "--codec", "portable", "--bound",
             "abs=0.5")
    words = said(cloud, "t")
    assert words["tailrace_absolute_bound"] == 0.5 and "tailrace_guard" not in words


def test_what_is_encoded_anew_says_nothing_of_its_source(guarded, tmp_path):
    again = tmp_path / "again.h5"
    tailrace("repack", guarded, "-o", again, "--codec", "trz", "--bound", "abs=0.5")
    words = said(again, "t")
    assert words["tailrace_absolute_bound"] == 0.5 and "tailrace_guard" not in words


def test_classic_copies_of_ours(exact, tmp_path):
    """nccopy takes attributes along, which a repack must not take for its own words."""
    lossy, classic = tmp_path / "lossy.nc", tmp_path / "classic.nc"
    plain, stored = tmp_path / "plain.nc", tmp_path / "stored.nc"
    source = tmp_path / "source.h5"
    with h5py.File(exact) as file, h5py.File(source, "w") as numbers_alone:
        numbers_alone["t"] = file["t"][()]
    tailrace("repack", source, "-o", lossy, "--netcdf", "--codec", "portable", "--bound",
             "abs=0.01")
    with h5py.File(lossy, "r+") as file:
        file["t"].attrs["tailrace_guard"] = np.bytes_("sign")
    copied = subprocess.run(["nccopy", "-k", "nc3", lossy, classic], capture_output=True, text=True,
                            timeout=60)
    assert copied.returncode == 0, copied.stderr
    tailrace("repack", classic, "-o", plain, "--bound", "rel=1e-3", "--codec", "trz")
    words = said(plain, "t")
    assert words["tailrace_bound_mode"] == "rel" and "tailrace_guard" not in words
    done = tailrace("repack", classic, "-o", stored, "--as-stored")
    assert "cannot be written" not in done.stderr + done.stdout
    kept = {key: np.asarray(value).item() if key != "tailrace_bound_mode" else value
            for key, value in of_values(said(stored, "t")).items()}
    assert kept == {key: np.asarray(value).item() if key != "tailrace_bound_mode" else value
                    for key, value in of_values(said(lossy, "t")).items()}
    assert said(stored, "t")["tailrace_codec"] == "deflate"
    tailrace("verify", classic, stored)
