"""Attributes of a copy about its source.

Copied chunks keep all of them, and encoded ones keep those about values. Attributes about bounds
and guards that do not hold are removed.
"""

import subprocess

import h5py
import numpy as np
import pytest
from cli_tools import attributes, datasets, numbers, smooth, tailrace
from test_front import raw_chunks

pytestmark = pytest.mark.sample(2)

#: Attributes about values, not about their encoding.
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
    """Write fields of two lengths, and a mask."""
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
    """Store lossy values in other programs' forms, with Tailrace's attributes about them."""
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
        file.create_dataset("plain", data=values.astype("f8"), chunks=(4, 24, 64))
        file["text"] = "no field"
        file["text"].attrs["tailrace_of_others"] = 1
        file.attrs["tailrace_file"] = np.bytes_(NOTE)
    return lossy


@pytest.mark.parametrize("layout", ["claimed", "front"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_what_others_store_keeps_its_words(exact, tmp_path, ranks, layout):
    source, copy = tmp_path / "source.h5", tmp_path / "copy.h5"
    as_others_store_it(source, exact)
    tailrace("repack", source, "-o", copy, "--publish=as-stored", "--layout", layout, ranks=ranks)
    before, after = datasets(source), datasets(copy)
    for name in ("compact", "contiguous", "swapped", "chunked", "plain"):
        assert np.array_equal(before[name], after[name]), name
    with h5py.File(copy) as file:
        for name in ("compact", "contiguous", "swapped", "chunked"):
            words = said(copy, name)
            assert of_values(words) == of_values(said(source, name)), name
            assert words["tailrace_bound_mode"] == "abs" and "tailrace_max_error" in words
            # Attributes about the encoding describe the copy: contiguous values are rewritten.
            codec = "none" if name == "contiguous" else "portable"
            assert words["tailrace_codec"] == codec, name
        assert file["swapped"].dtype == ">f4" and file["swapped"].compression == "gzip"
        assert file["compact"].id.get_create_plist().get_layout() == h5py.h5d.COMPACT
        assert said(copy, "plain") == {}
        # A dataset without attributes stays marked as exact.
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
    tailrace("repack", source, "-o", copy, "--publish=cloud")
    with h5py.File(copy) as file:
        assert file["rounded"].compression == "gzip" and file["rounded"].dtype == ">f4"
        assert "tailrace_file" not in file.attrs


@pytest.mark.parametrize("ranks", [1, 2])
def test_masks_of_guards_go_with_what_is_said(exact, guarded, tmp_path, ranks):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    tailrace("repack", guarded, "-o", whole, "--publish=as-stored", ranks=ranks)
    guard = said(guarded, "t")["tailrace_guard"]
    assert "region=/mask:0.001" in guard
    assert said(whole, "t") == said(guarded, "t") and said(whole, "u") == said(guarded, "u")
    tailrace("verify", exact, whole)
    done = tailrace("repack", guarded, "-o", part, "--publish=as-stored", "--only", "t",
                    ranks=ranks)
    words = said(part, "t")
    assert words["tailrace_guard"] == "sign+sum+monotone=0+region=*x0..8x*:0.002"
    assert {**words, "tailrace_guard": guard} == said(guarded, "t")
    assert 'field "/t": guard=' in done.stderr + done.stdout
    tailrace("verify", exact, part, "--only", "t")


def test_a_guard_that_was_a_mask_alone_goes_whole(exact, tmp_path):
    source, part = tmp_path / "source.h5", tmp_path / "part.h5"
    tailrace("repack", exact, "-o", source, "--codec", "trz", "--bound", "abs=0.01", "--field",
             "t:guard=region=/mask:0.001")
    tailrace("repack", source, "-o", part, "--publish=as-stored", "--exclude", "mask")
    assert "tailrace_guard" not in said(part, "t")
    assert said(part, "t")["tailrace_absolute_bound"] == 0.01
    tailrace("verify", exact, part, "--exclude", "mask")


@pytest.mark.parametrize("ranks", [1, 2])
def test_guards_of_chunks_end_with_these(exact, guarded, tmp_path, ranks):
    """--publish cloud makes larger chunks of small ones, with the same values."""
    cloud = tmp_path / "cloud.h5"
    tailrace("repack", guarded, "-o", cloud, "--publish=cloud", ranks=ranks)
    words = said(cloud, "t")
    assert words["tailrace_guard"] == "sign+region=*x0..8x*:0.002+region=/mask:0.001"
    assert words["tailrace_codec"] == "deflate" and words["tailrace_bound_mode"] == "abs"
    assert of_values(said(cloud, "u")) == of_values(said(guarded, "u"))
    tailrace("verify", exact, cloud)
    # A second loss is recorded with the first, and the source's guards are dropped.
    tailrace("repack", guarded, "-o", cloud, "--publish=cloud", "--force", "--codec", "portable",
             "--bound",
             "abs=0.5", "--again")
    words = said(cloud, "t")
    assert words["tailrace_absolute_bound"] == 0.51 and "tailrace_guard" not in words


def test_what_is_encoded_again_sums_the_bounds_and_drops_guards(guarded, tmp_path):
    again = tmp_path / "again.h5"
    tailrace("repack", guarded, "-o", again, "--codec", "trz", "--bound", "abs=0.5", "--again")
    words = said(again, "t")
    assert words["tailrace_absolute_bound"] == 0.51 and "tailrace_guard" not in words


def test_classic_copies_of_ours(exact, tmp_path):
    """nccopy copies attributes, which repack must not consider its own."""
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
                            timeout=600)
    assert copied.returncode == 0, copied.stderr
    bound = ["--bound", "rel=1e-3", "--codec", "trz"]
    tailrace("repack", classic, "-o", plain, *bound, code=2)
    tailrace("repack", classic, "-o", plain, *bound, "--again")
    words = said(plain, "t")
    assert words["tailrace_losses"].startswith("abs=0.01 then abs=")
    assert words["tailrace_absolute_bound"] > 0.01 and "tailrace_guard" not in words
    done = tailrace("repack", classic, "-o", stored, "--publish=as-stored")
    assert "cannot be written" not in done.stderr + done.stdout
    kept = {key: np.asarray(value).item() if key != "tailrace_bound_mode" else value
            for key, value in of_values(said(stored, "t")).items()}
    assert kept == {key: np.asarray(value).item() if key != "tailrace_bound_mode" else value
                    for key, value in of_values(said(lossy, "t")).items()}
    assert said(stored, "t")["tailrace_codec"] == "deflate"
    tailrace("verify", classic, stored)


def lossy_rows(path, first, bound, seed, *options, codec="portable", chunk="4x48x128",
               mask=None):
    """Write a file of rows within a bound, and a second one with the exact rows."""
    exact = path.with_suffix(".exact.h5")
    with h5py.File(exact, "w") as file:
        rows = smooth((16, 48, 128), seed) * first
        file.create_dataset("t", data=rows, maxshape=(None, 48, 128), chunks=(4, 48, 128))
        file.create_dataset("k", data=np.arange(16), maxshape=(None,), chunks=(16,))
        if mask is not None:
            file.create_dataset("mask", data=mask, maxshape=(None, 128), chunks=(48, 128))
    tailrace("repack", exact, "-o", path, "--codec", codec, "--bound", bound, "--chunk", chunk,
             *options)


def without_rows(source, path, *names):
    path.write_bytes(source.read_bytes())
    with h5py.File(path, "r+") as file:
        for name in names:
            file[name].resize(0, axis=0)
    return path


def told_by(*words, **keywords):
    done = tailrace(*words, **keywords)
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_concatenation_says_the_largest_bound(tmp_path, ranks):
    parts = [tmp_path / f"part{k}.h5" for k in range(4)]
    for k, part in enumerate(parts):
        lossy_rows(part, 1 + 2 * k, "rel=1e-3", k, "--verify", "on")
    whole, longer = tmp_path / "whole.h5", tmp_path / "longer.h5"
    said_of_it = told_by("concat", *parts, "-o", whole, ranks=ranks)
    assert "do not apply to all rows" not in said_of_it
    words, of_parts = said(whole, "t"), [said(part, "t") for part in parts]
    assert words.keys() == of_parts[0].keys()
    for key in words.keys() - {"tailrace_absolute_bound", "tailrace_max_error"}:
        assert words[key] == of_parts[0][key]
    for key in ("tailrace_absolute_bound", "tailrace_max_error"):
        each = [part[key] for part in of_parts]
        assert words[key] == max(each) > min(each)
    # More rows of the same kind, with a larger bound, not verified.
    more, other, unknown = (tmp_path / f"{name}.h5" for name in ("more", "other", "unknown"))
    lossy_rows(more, 20, "rel=1e-3", 8)
    tailrace("concat", more, "-o", whole, "-a", ranks=ranks)
    largest = said(more, "t")["tailrace_absolute_bound"]
    assert largest > words["tailrace_absolute_bound"]
    assert said(whole, "t") == {key: largest if key == "tailrace_absolute_bound" else value
                                for key, value in words.items() if key != "tailrace_max_error"}
    # Then rows with their own bound, or of unknown loss.
    lossy_rows(other, 1, "abs=0.5", 9)
    unknown.write_bytes(other.read_bytes())
    with h5py.File(unknown, "r+") as file:
        for key in list(file["t"].attrs):
            del file["t"].attrs[key]
    for words, before in ((["-o", longer, "-a"], [more]), (["-o", longer, "--force"], [])):
        longer.write_bytes(whole.read_bytes())
        told_by("concat", *([] if before else parts), other, *words, ranks=ranks)
        now = said(longer, "t")
        largest = max(said(part, "t")["tailrace_absolute_bound"] for part in (
            *parts, *before, other))
        assert now["tailrace_bound_mode"] == "abs"
        assert now["tailrace_bound_asked"] == now["tailrace_absolute_bound"] == largest
        longer.write_bytes(whole.read_bytes())
        said_of_it = told_by("concat", *([] if before else parts), unknown, *words, ranks=ranks)
        assert said(longer, "t") == UNKNOWN and unsaid("/t", said_of_it)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_concatenation_keeps_guards_of_each_value(tmp_path, ranks):
    """Other guards concern all values, chunks or places, and are dropped."""
    guard = "sign+threshold=0.5+sum+minmax+gradient=0.01+region=0..4x*x*:1e-4"
    parts = [tmp_path / f"part{k}.h5" for k in range(3)]
    for k, part in enumerate(parts):
        lossy_rows(part, 1, "abs=0.01", k, "--guard", guard, codec="trz")
    whole, alone = tmp_path / "whole.h5", tmp_path / "alone.h5"
    told = told_by("concat", *parts, "-o", whole, ranks=ranks)
    assert "only guards that apply to all rows are recorded: /t" in told
    words = said(parts[0], "t")
    assert sorted(words["tailrace_guard"].split("+")) == sorted(
        guard.replace("1e-4", "1e-04").split("+"))
    assert said(whole, "t") == {**words, "tailrace_guard": "sign+threshold=0.5+gradient=0.01"}
    assert raw_chunks(whole)["t"].keys() == {(4 * k, 0, 0) for k in range(12)}
    tailrace("concat", parts[0], "-o", alone, ranks=ranks)
    assert said(alone, "t") == words
    tailrace("verify", parts[0].with_suffix(".exact.h5"), alone)
    # A guard of only one part is not recorded for all.
    lossy_rows(parts[2], 1, "abs=0.01", 7, "--guard", "zero+gradient=0.01", "--force",
               codec="trz")
    tailrace("concat", *parts, "-o", whole, "--force", ranks=ranks)
    assert "tailrace_guard" not in said(whole, "t")
    assert said(whole, "t")["tailrace_absolute_bound"] == words["tailrace_absolute_bound"]


def test_a_concatenation_by_another_codec_says_so(tmp_path):
    parts = [tmp_path / f"part{k}.h5" for k in range(2)]
    for k, part in enumerate(parts):
        lossy_rows(part, 1, "abs=0.01", k, "--guard", "sign", codec="trz")
    whole = tmp_path / "whole.h5"
    tailrace("concat", *parts, "-o", whole, "--codec", "deflate")
    words = said(whole, "t")
    assert words["tailrace_codec"] == "deflate" and "tailrace_codec_version" not in words
    assert words["tailrace_absolute_bound"] == 0.01 and words["tailrace_guard"] == "sign"
    for k, part in enumerate(parts):  # The values satisfy that bound.
        exact = datasets(part.with_suffix(".exact.h5"))["t"]
        assert np.abs(datasets(whole)["t"][16 * k:16 * k + 16] - exact).max() <= 0.01


def test_a_note_on_the_file_holds_where_all_inputs_have_it(tmp_path):
    parts = [tmp_path / f"part{k}.h5" for k in range(3)]
    for k, part in enumerate(parts):
        with h5py.File(part, "w") as file:
            file.create_dataset("k", data=np.arange(16), maxshape=(None,), chunks=(16,))
            if k < 2:
                file.attrs["tailrace_file"] = np.bytes_(NOTE)
    whole = tmp_path / "whole.h5"
    tailrace("concat", *parts[:2], "-o", whole, ranks=2)
    assert attributes(whole, "/")["tailrace_file"].decode() == NOTE
    tailrace("concat", parts[1], "-o", whole, "-a")
    assert attributes(whole, "/")["tailrace_file"].decode() == NOTE
    tailrace("concat", parts[2], "-o", whole, "-a")
    assert "tailrace_file" not in attributes(whole, "/")
    tailrace("concat", *parts, "-o", whole, "--force", ranks=2)
    assert "tailrace_file" not in attributes(whole, "/")


def note(path):
    return "tailrace_file" in attributes(path, "/")


def noted(path, **datasets_of_it):
    with h5py.File(path, "w") as file:
        for name, how in datasets_of_it.items():
            file.create_dataset(name, **how)
        file.attrs["tailrace_file"] = np.bytes_(NOTE)


UNKNOWN = {"tailrace_codec": "unknown", "tailrace_bound_mode": "unknown"}
KNOWN_BY_NOBODY = "is unknown, and the output records it as unknown: "


def unsaid(path, told):
    """True if a remark names the dataset as one whose loss is unknown."""
    return KNOWN_BY_NOBODY in told and path in told[told.index(KNOWN_BY_NOBODY):]



def told_exact(path):
    """Return the names of the datasets that `info` considers exact."""
    return {field["path"][1:] for field in numbers("info", path)["fields"] if field["by_tailrace"]
            and field["absolute_bound"] == 0}


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_note_does_not_speak_of_more_than_it_did(tmp_path, ranks):
    """A note does not cover contiguous data, or chunks that always lose digits."""
    whole, longer = tmp_path / "whole.h5", tmp_path / "longer.h5"
    rows = smooth((16, 48, 64))
    exact = {"data": rows, "maxshape": (None, 48, 64), "chunks": (4, 48, 64)}
    others = {"rounded": {**exact, "scaleoffset": 2}, "contiguous": {"data": rows}}
    for kind, how in others.items():
        parts = [tmp_path / f"{kind}{k}.h5" for k in range(2)]
        for part in parts:
            noted(part, exact=exact, foreign=how)
        told = told_by("concat", *parts, "-o", whole, "--force", ranks=ranks)
        assert note(whole) and said(whole, "foreign") == {}, kind
        assert told_exact(whole) == {"exact"} and KNOWN_BY_NOBODY not in told
        asked = ("--codec", "deflate") if kind == "rounded" else ("--chunk", "4x")
        told = told_by("concat", *parts, "-o", whole, "--force", *asked, ranks=ranks)
        assert note(whole) and said(whole, "exact") == {}, kind
        assert said(whole, "foreign") == UNKNOWN and told_exact(whole) == {"exact"}
        assert f"the loss of some rows {KNOWN_BY_NOBODY}/foreign" in told
        # A note does not cover appended rows, either.
        tailrace("concat", parts[0], "-o", longer, "--force", ranks=ranks)
        tailrace("concat", parts[1], "-o", longer, "-a", ranks=ranks)
        assert note(longer) and said(longer, "foreign") == {}, kind
        if kind == "contiguous":
            tailrace("concat", parts[1], "-o", longer, "-a", *asked, ranks=ranks)
            assert note(longer) and said(longer, "foreign") == UNKNOWN
        with h5py.File(longer) as file:
            assert (file["foreign"].chunks is None) == (said(longer, "foreign") == {}) or (
                kind == "rounded")
            assert len(file["foreign"]) == len(file["exact"]) >= 32
        assert told_exact(longer) == {"exact"}
    exact_only, exact_too = tmp_path / "only.h5", tmp_path / "too.h5"
    noted(exact_only, exact=exact, foreign=exact)
    noted(exact_too, exact=exact, foreign={"data": rows})
    tailrace("concat", exact_only, "-o", longer, "--force")
    assert note(longer) and told_exact(longer) == {"exact", "foreign"}
    tailrace("concat", exact_too, "-o", longer, "-a", ranks=ranks)
    assert note(longer) and said(longer, "foreign") == UNKNOWN
    assert told_exact(longer) == {"exact"}
    # The mark stays after further appends, and in copies; a copy of the stored chunks keeps all.
    tailrace("concat", exact_only, "-o", longer, "-a", ranks=ranks)
    assert note(longer) and said(longer, "foreign") == UNKNOWN and said(longer, "exact") == {}
    for how in ("--publish=as-stored", "--publish=cloud"):
        tailrace("repack", longer, "-o", whole, how, "--force", ranks=ranks)
        assert said(whole, "foreign")["tailrace_bound_mode"] == "unknown"
        assert told_exact(whole) == {"exact"}
    tailrace("concat", longer, "-o", whole, "--force", ranks=ranks)
    assert said(whole, "foreign") == UNKNOWN and told_exact(whole) == {"exact"}


@pytest.mark.parametrize("ranks", [1, 3])
def test_files_without_a_note_end_it_for_what_they_have_rows_of(tmp_path, ranks):
    rows = {"data": np.arange(64), "maxshape": (None,), "chunks": (16,)}
    none = {**rows, "data": np.arange(0)}
    noted(tmp_path / "noted.h5", a=rows, b=rows)
    for name, how in {"bare": {"a": none, "b": rows}, "both": {"a": rows, "b": rows}}.items():
        noted(tmp_path / f"{name}.h5", **how)
        with h5py.File(tmp_path / f"{name}.h5", "r+") as file:
            del file.attrs["tailrace_file"]
    parts = [tmp_path / "noted.h5", tmp_path / "bare.h5"]
    whole = tmp_path / "whole.h5"
    for how in ("new", "-a"):
        if how == "new":
            tailrace("concat", *parts, "-o", whole, ranks=ranks)
        else:
            whole.write_bytes(parts[0].read_bytes())
            tailrace("concat", parts[1], "-o", whole, "-a", ranks=ranks)
        assert note(whole) and said(whole, "a") == {} and said(whole, "b") == UNKNOWN, how
        assert told_exact(whole) == {"a"}
        # The note is removed if it holds for no dataset.
        tailrace("concat", tmp_path / "both.h5", "-o", whole, "-a", ranks=ranks)
        assert not note(whole) and said(whole, "a") == said(whole, "b") == {}
    tailrace("concat", parts[0], tmp_path / "both.h5", "-o", whole, "--force", ranks=ranks)
    assert not note(whole) and said(whole, "a") == said(whole, "b") == {}
    # Inconsistent attributes are replaced in the same way.
    lossy = [tmp_path / f"lossy{k}.h5" for k in range(2)]
    for k, part in enumerate(lossy):
        lossy_rows(part, 1, f"abs=0.0{k + 1}", k)
        with h5py.File(part, "r+") as file:
            if k == 1:
                del file["t"].attrs["tailrace_absolute_bound"]
            file.attrs["tailrace_file"] = np.bytes_(NOTE)
            for key in list(file["k"].attrs):
                del file["k"].attrs[key]
    tailrace("concat", *lossy, "-o", whole, "--force", ranks=ranks)
    assert note(whole) and said(whole, "t") == UNKNOWN and told_exact(whole) == {"k"}
    whole.write_bytes(lossy[0].read_bytes())
    tailrace("concat", lossy[1], "-o", whole, "-a", ranks=ranks)
    assert note(whole) and said(whole, "t") == UNKNOWN and told_exact(whole) == {"k"}


def test_verify_does_not_know_what_nobody_knows(tmp_path):
    """verify compares values of unknown loss like those of a dataset without attributes."""
    exact, source, copy = (tmp_path / f"{name}.h5" for name in ("exact", "source", "copy"))
    rows = smooth((16, 48, 64))
    with h5py.File(exact, "w") as file:
        file["exact"] = file["foreign"] = rows
    noted(source, exact={"data": rows, "chunks": (4, 48, 64)}, foreign={"data": rows})
    tailrace("repack", source, "-o", copy, "--publish=cloud")
    assert said(copy, "foreign") == UNKNOWN
    found = {field["path"]: field for field in numbers("verify", exact, copy)["fields"]}
    assert found["/foreign"]["n_beyond_bound"] == 0
    with h5py.File(copy, "r+") as file:
        file["foreign"][3, 2, 1] += 1
    assert "/foreign" in tailrace("verify", exact, copy, code=1).stdout
    # A bound on the command line applies, because the dataset is not marked as exact.
    tailrace("verify", exact, copy, "--bound", "abs=1.5")


@pytest.mark.parametrize("ranks", [1, 2])
def test_datasets_without_rows_keep_words(tmp_path, ranks):
    rows, empty, second, other, whole = (tmp_path / f"{name}.h5" for name in
                                         ("rows", "empty", "second", "other", "whole"))
    lossy_rows(rows, 1, "abs=0.01", 1, "--guard", "sign+sum", codec="trz")
    lossy_rows(other, 1, "abs=0.5", 2)
    without_rows(rows, empty, "t")
    without_rows(other, second, "t")
    told = told_by("concat", empty, second, "-o", whole, ranks=ranks)
    assert said(whole, "t") == said(empty, "t") == said(rows, "t") != {}
    assert "the output does not record them" not in told
    # Appended rows keep the attributes if theirs are equal.
    saved = whole.read_bytes()
    tailrace("concat", rows, "-o", whole, "-a", ranks=ranks)
    assert said(whole, "t") == said(rows, "t")
    whole.write_bytes(saved)
    told = told_by("concat", other, "-o", whole, "-a", ranks=ranks)
    assert said(whole, "t") == UNKNOWN and unsaid("/t", told)
    tailrace("concat", empty, "-o", whole, "--force", "--codec", "deflate", ranks=ranks)
    assert of_values(said(whole, "t")) == of_values(said(rows, "t"))
    assert said(whole, "t")["tailrace_codec"] == "deflate"


@pytest.mark.parametrize("how", ["--publish=as-stored", "--publish=cloud"])
@pytest.mark.parametrize("layout", ["claimed", "front"])
def test_a_copy_does_not_extend_a_note_to_others_data(tmp_path, how, layout):
    source, copy = tmp_path / "source.h5", tmp_path / "copy.h5"
    rows = smooth((16, 48, 64))
    exact = {"data": rows, "chunks": (4, 48, 64)}
    asked = (how, "--layout", layout, "--force")
    noted(source, exact=exact)
    tailrace("repack", source, "-o", copy, *asked)
    assert note(copy) and told_exact(copy) == {"exact"}
    noted(source, exact=exact, foreign={"data": rows})
    told = told_by("repack", source, "-o", copy, *asked)
    with h5py.File(copy) as file:
        contiguous = file["foreign"].chunks is None
    assert contiguous == (how == "--publish=as-stored")
    assert note(copy) and said(copy, "foreign") == ({} if contiguous else UNKNOWN)
    assert told_exact(copy) == {"exact"} and (KNOWN_BY_NOBODY in told) != contiguous
    # Without a note, no dataset needs a mark.
    with h5py.File(source, "r+") as file:
        del file.attrs["tailrace_file"]
    tailrace("repack", source, "-o", copy, *asked)
    assert not note(copy) and said(copy, "foreign") == said(copy, "exact") == {}


@pytest.mark.parametrize("ranks", [1, 2])
def test_guards_by_masks_stay_with_these(tmp_path, ranks):
    """Rows come from one file, and masks from the same file or from two files."""
    rows, empty, bare = (tmp_path / f"{name}.h5" for name in ("rows", "empty", "bare"))
    mask = (np.indices((48, 128)).sum(0) % 3 == 0).astype("u1")
    lossy_rows(rows, 1, "abs=0.01", 1, "--field", "t:guard=sign+region=/mask:0.001", codec="trz",
               mask=mask)
    without_rows(rows, empty, "t")
    without_rows(rows, bare, "t", "mask")
    with h5py.File(empty, "r+") as file:
        file["mask"][...] = 1 - mask
    whole = tmp_path / "whole.h5"
    guard = said(rows, "t")["tailrace_guard"]
    assert "region=/mask" in guard
    for parts, held in (((bare, rows), guard), ((rows, bare), guard), ((empty, rows), "sign"),
                        ((rows, empty), "sign")):
        told = told_by("concat", *parts, "-o", whole, "--force", ranks=ranks)
        assert said(whole, "t")["tailrace_guard"] == held, parts
        assert ("only guards that apply to all rows" in told) == (held == "sign")
        # Concatenate the same files in sequence: rows may join masks, and masks may join rows.
        whole.write_bytes(parts[0].read_bytes())
        told = told_by("concat", parts[1], "-o", whole, "-a", ranks=ranks)
        assert said(whole, "t")["tailrace_guard"] == held, parts
        assert ("only guards that apply to all rows" in told) == (held == "sign")


@pytest.mark.parametrize("ranks", [1, 2])
def test_guards_of_chunks_stay_with_the_chunks_of_the_rows(tmp_path, ranks):
    guard = ("--guard", "sign+sum")
    rows, source, empty = (tmp_path / f"{name}.h5" for name in ("rows", "source", "empty"))
    lossy_rows(rows, 1, "abs=0.01", 1, *guard, codec="trz", chunk="8x48x128")
    lossy_rows(source, 1, "abs=0.01", 1, *guard, codec="trz")
    without_rows(source, empty, "t")
    whole = tmp_path / "whole.h5"
    # Chunks of another shape are encoded again, so the codec must be lossless.
    tailrace("concat", empty, rows, "-o", whole, "--codec", "deflate", ranks=ranks)
    with h5py.File(whole) as file:
        assert file["t"].chunks == (4, 48, 128)
    assert said(whole, "t")["tailrace_guard"] == "sign"
    tailrace("concat", empty, source, "-o", whole, "--force", ranks=ranks)
    assert said(whole, "t")["tailrace_guard"] == said(source, "t")["tailrace_guard"]
    whole.write_bytes(empty.read_bytes())
    tailrace("concat", source, "-o", whole, "-a", ranks=ranks)
    assert said(whole, "t")["tailrace_guard"] == said(source, "t")["tailrace_guard"]
    # The chunks have another shape, with a lossless filter.
    for path, chunks in ((empty, (4, 48, 128)), (rows, (8, 48, 128))):
        with h5py.File(path, "r+") as file:
            words, values = dict(file["t"].attrs), np.zeros(file["t"].shape, "f4")
            del file["t"]
            file.create_dataset("t", data=values, maxshape=(None, 48, 128), chunks=chunks,
                                compression="gzip").attrs.update(words)
    whole.write_bytes(empty.read_bytes())
    tailrace("concat", rows, "-o", whole, "-a", ranks=ranks)
    assert said(whole, "t")["tailrace_guard"] == "sign"


@pytest.mark.parametrize("name, value", [
    ("tailrace_bound_mode", np.bytes_("of_others")), ("tailrace_bound_mode", None),
    ("tailrace_bound_asked", None), ("tailrace_bound_asked", np.nan),
    ("tailrace_absolute_bound", None), ("tailrace_absolute_bound", np.nan),
    ("tailrace_max_error", np.nan)])
def test_words_that_are_not_whole_are_not_put_together(tmp_path, name, value):
    parts = [tmp_path / f"part{k}.h5" for k in range(2)]
    for k, part in enumerate(parts):
        lossy_rows(part, 1, "rel=1e-3", k, "--verify", "on")
    whole = tmp_path / "whole.h5"
    for broken in (1, 0):
        saved = parts[broken].read_bytes()
        with h5py.File(parts[broken], "r+") as file:
            del file["t"].attrs[name]
            if value is not None:
                file["t"].attrs[name] = value
        tailrace("concat", *parts, "-o", whole, "--force")
        assert said(whole, "t") == UNKNOWN
        # Appending, instead of joining, gives the same attributes.
        whole.write_bytes(parts[0].read_bytes())
        told = told_by("concat", parts[1], "-o", whole, "-a")
        assert said(whole, "t") == UNKNOWN and unsaid("/t", told)
        parts[broken].write_bytes(saved)
    tailrace("concat", *parts, "-o", whole, "--force")
    assert said(whole, "t") != {}


def test_rows_that_come_to_contiguous_ones_keep_words(tmp_path):
    lossy, part, whole = (tmp_path / f"{name}.h5" for name in ("lossy", "part", "whole"))
    lossy_rows(lossy, 1, "abs=0.01", 1)
    with h5py.File(lossy) as source, h5py.File(part, "w") as file:
        file["t"] = source["t"][()]
        for key, value in source["t"].attrs.items():
            if key.startswith("tailrace_"):
                file["t"].attrs[key] = value
    tailrace("concat", part, "-o", whole)
    told = told_by("concat", part, "-o", whole, "-a")
    assert "the output does not record them" not in told
    assert said(whole, "t") == said(part, "t")
    told = told_by("concat", part, "-o", whole, "-a", "--chunk", "4x")
    assert "the output does not record them" not in told
    words = said(whole, "t")
    assert of_values(words) == of_values(said(part, "t")) and words["tailrace_codec"] == "none"
    with h5py.File(whole) as file:
        assert len(file["t"]) == 48 and file["t"].chunks is not None


def test_a_remark_names_few_of_many(tmp_path):
    exact, source, part = (tmp_path / f"{name}.h5" for name in ("exact", "source", "part"))
    with h5py.File(exact, "w") as file:
        for k in range(10):
            file[f"t{k}"] = smooth((8, 32, 32), k)
        file["mask"] = np.ones((32, 32), "u1")
    tailrace("repack", exact, "-o", source, "--codec", "trz", "--bound", "abs=0.01", "--field",
             "t*:guard=sign+region=/mask:0.001")
    told = told_by("repack", source, "-o", part, "--publish=as-stored", "--exclude", "mask")
    assert told.count(": guard=") == 8
    assert "the guards of 2 more datasets are also recorded only in part" in told
    assert all(said(part, f"t{k}")["tailrace_guard"] == "sign" for k in range(10))
