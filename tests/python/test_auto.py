"""Codec auto on the command line: the default with a bound, explained by --why, with targets."""

import json

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, numbers, smooth, tailrace


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("auto") / "fields.h5"
    with h5py.File(path, "w") as file:
        file["smooth"] = smooth((64, 64, 64))
        file["rough"] = np.random.default_rng(1).normal(size=(64, 64, 64)).astype("f4")
        file["counts"] = np.arange(64 ** 3, dtype="i4").reshape(64, 64, 64) // 7
        file["levels"] = np.linspace(0, 1, 64)
    return path


@pytest.fixture
def alone(tmp_path):
    """Return an environment without the profile of this machine's user."""
    environment = {**ENVIRONMENT, "HOME": str(tmp_path)}
    environment.pop("TAILRACE_PROFILE", None)
    return environment


def field(document, name):
    return next(f for f in document["files"][0]["fields"] if f["path"].endswith(name))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_auto_is_the_default_with_a_bound(source, tmp_path, alone, ranks):
    out = tmp_path / "out.h5"
    told = numbers("repack", source, "-o", out, "--bound", "rel=1e-3", ranks=ranks,
                   environment=alone)
    smooth_field = field(told, "smooth")
    chosen = [c for c in smooth_field["candidates"] if c["chosen"]]
    assert len(chosen) == 1 and chosen[0]["codec"].startswith(smooth_field["codec"])
    assert chosen[0]["refused"] is None
    assert chosen[0]["predicted_bytes"] == pytest.approx(smooth_field["encoded_bytes"], rel=0.25)
    assert told["files"][0]["profile"] == "typical values, scaled to this core"
    assert field(told, "counts")["absolute_bound"] == 0
    # Coordinates, which every reader reads first, stay readable everywhere.
    assert field(told, "levels")["codec"] in ("deflate", "none")
    tailrace("verify", source, out, ranks=ranks)


def test_all_ranks_alike_whatever_their_number(source, tmp_path, alone):
    codecs = set()
    for ranks in (1, 2, 4):
        told = numbers("repack", source, "-o", tmp_path / f"{ranks}.h5", "--bound", "rel=1e-3",
                       "--for", "size", ranks=ranks, environment=alone)
        codecs.add(field(told, "smooth")["codec"])
    assert len(codecs) == 1


def test_why_prints_every_candidate(source, tmp_path, alone):
    text = tailrace("repack", source, "-o", tmp_path / "out.h5", "--bound", "rel=1e-3", "--why",
                    environment=alone).stdout
    for codec in ("> ", "none", "trz", "trz,preset=fast", "sz3", "zfp", "portable", "deflate"):
        assert codec in text
    assert "measured" not in text.split("why:")[1].replace("measures this machine", "")
    assert all(len(line) <= 100 for line in text.splitlines())


def test_why_measured_stands_beside_the_prediction(source, tmp_path, alone):
    told = numbers("repack", source, "-o", tmp_path / "out.h5", "--bound", "rel=1e-3",
                   "--why=measured", environment=alone)
    rough = field(told, "rough")
    measured = {c["codec"]: c for c in rough["candidates"] if "measured_bytes" in c}
    assert {"none", "trz", "deflate", "portable"} <= set(measured)
    assert all(c["measured_encode_s"] > 0 for c in measured.values())
    trz = measured["trz"]
    assert trz["measured_bytes"] == pytest.approx(trz["predicted_bytes"], rel=0.25)
    text = tailrace("repack", source, "-o", tmp_path / "out.h5", "--force", "--bound", "rel=1e-3",
                    "--why=measured", environment=alone).stdout
    assert "measured" in text and all(len(line) <= 100 for line in text.splitlines())


def test_smaller_objective_makes_no_larger_file(source, tmp_path, alone):
    sizes = {}
    for objective in ("speed", "size", "balanced"):
        told = numbers("repack", source, "-o", tmp_path / f"{objective}.h5", "--bound", "rel=1e-3",
                       "--for", objective, environment=alone)
        sizes[objective] = told["files"][0]["encoded_bytes"]
    assert sizes["size"] <= sizes["balanced"] * 1.02
    assert sizes["balanced"] <= sizes["speed"] * 1.02


@pytest.fixture(scope="module")
def fast_storage(tmp_path_factory):
    """Write a profile with storage of 10 GB/s per rank; trz is fast only with preset=fast."""
    said = json.loads(tailrace("profile", "--show", "built-in", "--json", "-").stdout)
    profile = {**said["profile"], "built_in": False}
    for line in profile["write"]["rooflines"]:
        times = 10e9 * line["ranks"] / line["ceiling_bytes_per_s"]
        for key in ("slope", "intercept", "ceiling_bytes_per_s"):
            line[key] *= times
    for one in profile["codecs"]:
        if one["codec"].startswith("trz") and "fast" not in one["codec"]:
            one["encode"]["least_bytes_per_s"] /= 8
            one["encode"]["greatest_bytes_per_s"] /= 8
    path = tmp_path_factory.mktemp("profile") / "fast.json"
    path.write_text(json.dumps(profile))
    return path


def test_what_is_faster_sets_how_long_a_smaller_choice_may_take(source, fast_storage, tmp_path,
                                                                alone):
    """`balanced`, repack's default, considers the fastest codec, but never writes a larger file."""
    sizes = {}
    for objective in ("speed", "balanced", None):
        chosen = ["--for", objective] if objective else []
        told = numbers("repack", source, "-o", tmp_path / f"{objective}.h5", "--bound", "rel=1e-3",
                       "--profile", fast_storage, *chosen, environment=alone)
        sizes[objective] = told["files"][0]["encoded_bytes"]
    assert sizes["balanced"] <= sizes["speed"] < source.stat().st_size
    assert sizes[None] == sizes["balanced"]


def test_explicit_portable_is_readable_without_a_plugin(source, tmp_path):
    out = tmp_path / "out.h5"
    tailrace("repack", source, "-o", out, "--bound", "rel=1e-3", "--codec", "portable")
    with h5py.File(source) as before, h5py.File(out) as after:
        span = np.ptp(before["smooth"][:])
        assert np.abs(before["smooth"][:] - after["smooth"][:]).max() <= 1.0001e-3 * span
        assert np.array_equal(before["counts"][:], after["counts"][:])


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("target", [400_000, 900_000])
def test_target_size(source, tmp_path, alone, target, ranks):
    out = tmp_path / "out.h5"
    told = numbers("repack", source, "-o", out, "--target", f"size={target}", ranks=ranks,
                   environment=alone)
    assert told["files"][0]["encoded_bytes"] == pytest.approx(target, rel=0.15)
    bounds = {f["bound_asked"] for f in told["files"][0]["fields"] if f["absolute_bound"] > 0}
    assert len(bounds) == 1  # one bound for all
    assert field(told, "counts")["absolute_bound"] == 0
    tailrace("verify", source, out)


def test_target_size_that_cannot_be(source, tmp_path):
    said = tailrace("repack", source, "-o", tmp_path / "out.h5", "--target", "size=1kB",
                    "--bound", "rel=1e-4", code=2).stderr
    assert "target=size=" in said and "a step needs about" in said
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("target", [("--target", "psnr=70"), ("--target", "size=100KB")])
def test_targets_beside_scalars_and_nothing(tmp_path, alone, target):
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["smooth"] = smooth((32, 32, 32))
        file["time"] = 1.5
        file["step"] = np.int32(7)
        file.create_dataset("none", (0, 4), "f4", chunks=(1, 4), maxshape=(None, 4))
    numbers("repack", source, "-o", out, *target, environment=alone)
    with h5py.File(out) as file:
        assert (file["time"][()], file["step"][()], file["none"].shape) == (1.5, 7, (0, 4))


def test_target_psnr(source, tmp_path, alone):
    out = tmp_path / "out.h5"
    told = numbers("repack", source, "-o", out, "--target", "psnr=70", environment=alone)
    found = numbers("verify", source, out)
    for one in found["fields"]:
        if one["path"].endswith(("smooth", "rough")):
            assert one["psnr_db"] == pytest.approx(70, abs=1)
            expected = field(told, one["path"])["expected_psnr_db"]
            assert expected == pytest.approx(one["psnr_db"], abs=0.7)


def test_a_profile_that_is_missing_or_none(source, tmp_path):
    said = tailrace("repack", source, "-o", tmp_path / "out.h5", "--bound", "rel=1e-3",
                    "--profile", tmp_path / "no.json", code=2, ranks=2).stderr
    assert "no.json" in said
    (tmp_path / "bad.json").write_text(json.dumps({"hello": 1}))
    said = tailrace("repack", source, "-o", tmp_path / "out.h5", "--bound", "rel=1e-3",
                    "--profile", tmp_path / "bad.json", code=2).stderr
    assert "bad.json" in said
