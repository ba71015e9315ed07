"""Roles: a bound for a whole file of another community changes only its values.

Each file has a community's layout, is small, and is written with h5py. Arrays that must stay exact
have at least 4 KiB, because smaller ones stay exact anyway.
"""

import json
import pathlib

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import numbers, smooth, tailrace
from hdf5_runs import by_deflate

N = 2000
RNG = np.random.default_rng(50)


def rough(*shape):
    return RNG.normal(0, 3, shape)


def positions(n=N):
    return RNG.uniform(0, 100, (n, 3))


def write(file, datasets, groups=None):
    for path, attributes in (groups or {}).items():
        file.require_group(path).attrs.update(attributes)
    for path, values in datasets.items():
        file[path] = values


def vtkhdf(file):
    points = positions()
    write(file, {"VTKHDF/Points": points, "VTKHDF/Connectivity": np.arange(8 * N),
                 "VTKHDF/Offsets": np.arange(N), "VTKHDF/Steps/Values": np.cumsum(rough(N) ** 2),
                 "VTKHDF/PointData/u": np.sin(points[:, 0]), "VTKHDF/CellData/time": rough(N)},
          {"VTKHDF": {"Version": (2, 0), "Type": np.bytes_("UnstructuredGrid")}})
    return ["VTKHDF/PointData/u", "VTKHDF/CellData/time"]


def cgns(file):
    base = "Base/Zone"
    write(file, {f"{base}/GridCoordinates/CoordinateX/ data": rough(12, 12, 12),
                 f"{base}/FlowSolution/Density/ data": smooth((12, 12, 12)).astype("f8"),
                 "Base/Iterations/TimeValues/ data": np.cumsum(rough(N) ** 2)})
    labels = {"Base": "CGNSBase_t", base: "Zone_t", f"{base}/GridCoordinates": "GridCoordinates_t",
              f"{base}/GridCoordinates/CoordinateX": "DataArray_t",
              f"{base}/FlowSolution": "FlowSolution_t",
              f"{base}/FlowSolution/Density": "DataArray_t",
              "Base/Iterations": "BaseIterativeData_t", "Base/Iterations/TimeValues": "DataArray_t"}
    for path, label in labels.items():
        file[path].attrs["label"] = np.bytes_(label.ljust(32, "\0"))
    return [f"{base}/FlowSolution/Density/ data"]


def athena(file):
    write(file, {"x1f": np.sort(rough(20, 65)), "x2v": np.sort(rough(20, 64)).astype("f4"),
                 "LogicalLocations": np.zeros((20, 3), "i8"), "prim": rough(2, 4, 8, 8, 8)})
    file.attrs["RootGridX1"] = np.array([-0.5, 0.5, 1.0])
    return ["prim"]


def flash(file):
    write(file, {"bounding box": rough(100, 3, 2), "coordinates": rough(300, 3),
                 "block size": rough(300, 3), "gid": np.zeros((100, 15), "i4"),
                 "tracer particles": rough(200, 9), "dens": 1 + rough(100, 4, 4, 4) ** 2,
                 "unknown names": np.array([[b"dens"]])})
    file["dens"].attrs.update(minimum=file["dens"][...].min(), maximum=file["dens"][...].max())
    return ["dens"]


def gadget(file):
    for k in (0, 1):
        write(file, {f"PartType{k}/Coordinates": positions(),
                     f"PartType{k}/Velocities": rough(N, 3),
                     f"PartType{k}/ParticleIDs": RNG.permutation(N).astype("u8"),
                     f"PartType{k}/Masses": RNG.lognormal(0, 1, N).astype("f4")})
    write(file, {"PartType0/Density": RNG.lognormal(0, 3, N).astype("f4"),
                 "Cells/Centres": positions(512), "Cells/Counts/PartType0": np.full(512, 3)},
          {"Header": {"BoxSize": 100.0}})
    return [f"PartType{k}/{name}" for k in (0, 1) for name in ("Velocities", "Masses")] + [
        "PartType0/Density"]


def h5md(file):
    group = "particles/all"
    write(file, {f"{group}/position/value": rough(5, N, 3),
                 f"{group}/velocity/value": rough(5, N, 3),
                 f"{group}/box/edges/value": rough(300, 3), f"{group}/position/time": rough(N),
                 "observables/temperature/value": rough(N)}, {"h5md": {"version": (1, 1)}})
    return [f"{group}/velocity/value", "observables/temperature/value"]


def openpmd(file):
    data = "data/100"
    write(file, {f"{data}/fields/E/x": smooth((20, 20, 20)),
                 f"{data}/fields/E/y": rough(12, 12, 12),
                 f"{data}/particles/e/position/x": rough(N),
                 f"{data}/particles/e/weighting": rough(N),
                 f"{data}/particles/e/momentum/x": rough(N)})
    file.attrs["openPMD"] = np.bytes_("1.1.0")
    return [f"{data}/fields/E/x", f"{data}/fields/E/y", f"{data}/particles/e/momentum/x"]


def nwb(file):
    write(file, {"units/spike_times": np.cumsum(rough(N) ** 2), "units/spike_times_index": [5, 9],
                 "acquisition/lfp/data": rough(N, 4), "acquisition/lfp/timestamps": rough(N)})
    file.attrs["nwb_version"] = "2.6.0"
    return ["acquisition/lfp/data"]


def nexus(file):
    write(file, {"entry/data/counts": rough(N, 2), "entry/data/energy": rough(N),
                 "entry/data/frame": rough(N, 2), "entry/log/value": rough(N),
                 "entry/log/time": rough(N), "entry/bank/x_pixel_offset": rough(40, 40)},
          {"entry/data": {"NX_class": "NXdata", "signal": "counts", "axes": ["energy", "."],
                          "frame_indices": [0, 1]},
           "entry/log": {"NX_class": "NXlog"}, "entry/bank": {"NX_class": "NXdetector"}})
    return ["entry/data/counts", "entry/log/value"]


def anndata(file):
    write(file, {"X/data": rough(N), "X/indices": np.arange(N), "obsm/spatial": rough(N, 2),
                 "obsm/X_pca": rough(N, 5), "obs/score": rough(N), "obs/cell": rough(N)},
          {"/": {"encoding-type": "anndata"}, "X": {"encoding-type": "csr_matrix"},
           "obs": {"encoding-type": "dataframe", "_index": "cell"}})
    return ["X/data", "obsm/X_pca", "obs/score"]


def pytables(file):
    write(file, {"_i_table/x/sorted": rough(4, N), "_i_table/x/bounds": rough(N),
                 "frame/axis0": rough(N), "frame/block0_values": rough(N, 2),
                 "earray": rough(N, 2)},
          {"/": {"PYTABLES_FORMAT_VERSION": np.bytes_("2.1")},
           "frame": {"pandas_type": np.bytes_("frame")}})
    return ["frame/block0_values", "earray"]


def icesat(file):
    write(file, {"gt1l/heights/lat_ph": rough(N), "gt1l/heights/lon_ph": rough(N),
                 "gt1l/heights/h_ph": rough(N), "gt1l/heights/delta_time": rough(N),
                 "gt1l/heights/dist_ph_along": rough(N), "ancillary_data/control": np.arange(3)})
    return ["gt1l/heights/h_ph"]


def hdfeos(file):
    swath = "HDFEOS/SWATHS/O3"
    write(file, {f"{swath}/Geolocation Fields/Pressure": rough(N),
                 f"{swath}/Data Fields/O3": rough(N, 5)})
    return [f"{swath}/Data Fields/O3"]


def wrf(file):
    write(file, {"XLAT": rough(1, 40, 40), "XLONG": rough(1, 40, 40), "MAPFAC_M": rough(1, 40, 40),
                 "T": rough(1, 4, 40, 40), "LU_INDEX": rough(1, 40, 40)})
    file.attrs["MMINLU"] = "USGS"
    return ["T"]


def nobody(file):
    """Write a file without a community's layout: roles depend on names only."""
    write(file, {"x": rough(N), "y": rough(N), "z": rough(N), "vx": rough(N), "t": rough(N),
                 "fields/x": rough(10, 10, 10), "velocity/x": rough(N), "velocity/y": rough(N),
                 "grid/lat": rough(40, 40), "grid/lon": rough(40, 40),
                 "grid/density": rough(40, 40),
                 "grid/weights": rough(N), "mesh/vertices": positions(), "bin_edges": rough(N)})
    return ["vx", "fields/x", "velocity/x", "velocity/y", "grid/density"]


WRITERS = [vtkhdf, cgns, athena, flash, gadget, h5md, openpmd, nwb, nexus, anndata, pytables,
           icesat, hdfeos, wrf, nobody]


def floats(path):
    """Return all datasets of numbers."""
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu":
            found[name] = item[...]
    with h5py.File(path) as file:
        file.visititems(take)
    return found


@pytest.mark.parametrize("ranks", [1, 2])
def test_one_bound_changes_values_alone(ranks, tmp_path):
    sources, targets = tmp_path / "in", tmp_path / "out"
    sources.mkdir()
    targets.mkdir()
    values_of = {}
    for writer in WRITERS:
        with h5py.File(sources / f"{writer.__name__}.h5", "w") as file:
            values_of[writer.__name__] = writer(file)
    reports = numbers("repack", *sorted(sources.iterdir()), "-o", targets, "--codec", "portable",
                      "--bound", "rel=1e-3", ranks=ranks)["files"]
    for report in reports:
        source = sources / pathlib.Path(report["input"]).name
        values = values_of[source.stem]
        before, after = floats(source), floats(targets / source.name)
        assert sorted(before) == sorted(after)
        fields = {field["path"][1:]: field for field in report["fields"]}
        for name, original in before.items():
            field, where = fields[name], (source.stem, name)
            if name not in values:
                assert after[name].tobytes() == original.tobytes(), where
                assert field["kept_exact_because"], where
                if field["kept_exact_because"] not in ("integers", "small"):
                    assert field["kept_exact_because"] == field["role"] != "value", where
                    assert field["role_because"], where
                continue
            error = np.abs(after[name].astype("f8") - original).max()
            assert 0 < error <= 1e-3 * np.ptp(original), where
            assert (field["role"], field["kept_exact_because"]) == ("value", ""), where
    assert len(reports) == len(WRITERS)


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "snapshot.h5"
    with h5py.File(path, "w") as file:
        gadget(file)
    return path


def test_the_summary_says_what_changed_and_what_stayed(snapshot, tmp_path):
    said = tailrace("repack", snapshot, "-o", tmp_path / "out.h5", "--codec", "trz", "--bound",
                    "rel=1e-3").stdout
    said = " ".join(said.split())
    assert "with loss: 5 datasets: /PartType0/Density, /PartType0/Masses," in said
    assert ("3 geometry (/Cells/Centres, /PartType0/Coordinates, /PartType1/Coordinates)") in said
    assert "exact: 6 datasets: " in said and "--roles off" in said
    assert "limits that the file or its format states: /PartType0/Density" in said


def test_roles_off_and_entries_by_name(snapshot, tmp_path):
    target = tmp_path / "out.h5"
    common = ["repack", snapshot, "-o", target, "--codec", "trz", "--bound", "rel=1e-3", "--force"]
    off = {field["path"]: field for field in
           numbers(*common, "--roles", "off")["files"][0]["fields"]}
    assert off["/PartType0/Coordinates"]["absolute_bound"] > 0
    assert off["/PartType0/Coordinates"]["role"] is None
    assert off["/PartType0/ParticleIDs"]["kept_exact_because"] == "integers"
    assert off["/PartType0/Density"]["limits_kept"] == []
    named = {field["path"]: field for field in numbers(
        *common, "--field", "/PartType0/Coordinates:bound=abs=0.5")["files"][0]["fields"]}
    assert named["/PartType0/Coordinates"]["absolute_bound"] == 0.5
    assert named["/PartType0/Coordinates"]["kept_exact_because"] == ""
    assert named["/PartType1/Coordinates"]["absolute_bound"] == 0
    done = tailrace(*common, "--roles", "perhaps", code=2)
    assert "--roles perhaps: expected on or off" in done.stderr
    exact = numbers("repack", snapshot, "-o", target, "--force")["files"][0]["fields"]
    assert {field["role"] for field in exact} == {None}


@pytest.mark.parametrize("options", [["--target", "psnr=60"], ["--target", "size=150kB"],
                                     ["--codec", "zfp,rate=8"], ["--codec", "zfp,precision=12"]])
def test_targets_and_codecs_that_always_lose_are_for_values_alone(options, snapshot, tmp_path):
    report = numbers("repack", snapshot, "-o", tmp_path / "out.h5", *options)["files"][0]
    before, after = floats(snapshot), floats(by_deflate(tmp_path / "out.h5"))
    lossy = {name for name in before if after[name].tobytes() != before[name].tobytes()}
    assert "PartType1/Velocities" in lossy
    assert lossy <= {field["path"][1:] for field in report["fields"] if field["role"] == "value"}


def test_values_stay_within_limits_that_the_file_states(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(source, "w") as file:
        for name, size in (("y", 60), ("x", 50)):
            file.createDimension(name, size)
        cover = file.createVariable("cover", "f4", ("y", "x"))
        cover.standard_name = "cloud_area_fraction"
        cover[:] = np.clip(rng.normal(0.5, 0.5, (60, 50)), 0, 1)
        speed = file.createVariable("speed", "f8", ("y", "x"))
        speed.valid_range = np.array([0.0, 5.0])
        speed[:] = rng.uniform(-0.1, 5.1, (60, 50))
        plain = file.createVariable("plain", "f8", ("y", "x"))
        plain.actual_range = np.array([-9.0, 9.0])
        plain[:] = rng.normal(0, 2, (60, 50))
    common = ["repack", source, "-o", target, "--bound", "abs=0.2", "--force"]
    report = numbers(*common, "--codec", "trz", ranks=2)["files"][0]
    fields = {field["path"]: field for field in report["fields"]}
    assert fields["/cover"]["limits_kept"] == [0, 1]
    assert fields["/speed"]["limits_kept"] == [0, 5]
    assert fields["/plain"]["limits_kept"] == []
    with h5py.File(source) as before, h5py.File(target) as after:
        assert after["cover"].attrs["tailrace_guard"] in ("threshold=0+threshold=1",
                                                          b"threshold=0+threshold=1")
        assert "tailrace_guard" not in after["plain"].attrs
    tailrace("verify", source, target)
    decoded = tmp_path / "decoded.nc"
    tailrace("export", target, "-o", decoded)
    with h5py.File(source) as before, h5py.File(decoded) as after:
        for name, limits in (("cover", (0, 1)), ("speed", (0, 5))):
            x, y = before[name][...], after[name][...]
            assert (x != y).any()
            for limit in limits:
                assert ((x < limit) == (y < limit)).all() and ((x > limit) == (y > limit)).all()
    # A codec without guards is not an error: a remark names datasets that may exceed their limits.
    done = tailrace(*common, "--codec", "portable")
    said = " ".join(done.stderr.split())
    assert ("may exceed their stated limits by up to the bound (valid_range, which codec portable"
            in said)
    assert "attributes actual_range state the extremes" in said and "/plain" in said
    # The user's choice of guards has priority.
    own = numbers(*common, "--codec", "trz", "--field", "speed:guard=none")["files"][0]["fields"]
    assert {f["path"]: f["limits_kept"] for f in own}["/speed"] == []
    minmax = tailrace(*common, "--codec", "trz", "--guard", "minmax").stderr
    assert "state the extremes" not in minmax


def test_netcdf_classic_attributes_decide_too(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    with netCDF4.Dataset(source, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("cell", 1500)
        for name, attributes in (("rows", {"units": "degrees_north"}),
                                 ("when", {"units": "hours since 1970-01-01"}),
                                 ("area", {"standard_name": "cell_area"}), ("t2m", {})):
            variable = file.createVariable(name, "f8", ("cell",))
            variable.setncatts(attributes)
            variable[:] = np.random.default_rng(len(name)).normal(size=1500)
    report = numbers("repack", source, "-o", target, "--bound", "abs=0.1", "--codec", "portable")
    roles = {field["path"]: field["role"] for field in report["files"][0]["fields"]}
    assert roles == {"/rows": "coordinate", "/when": "time", "/area": "weight", "/t2m": "value"}


def test_attributes_of_any_type_are_read_or_passed_over(tmp_path):
    """Attributes with the rules' names, but unsuitable values, are ignored."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    odd = [np.array([], "f8"), h5py.Empty("f4"), np.arange(5000), "x" * 60000, "größe",
           np.array(["a", "b c", ""], object), np.bytes_("degrees_north   "), np.float32(np.nan),
           np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.bool_(True),
           np.array([b"a", b"bc"]), b"\xff\xfe"]
    with h5py.File(source, "w", track_order=True) as file:
        for n, value in enumerate(odd):
            for name in ("units", "axes", "coordinates", "valid_range", "label", "minimum"):
                values = file.create_dataset(f"of_{name}/{n}", data=np.linspace(0, 1, N))
                values.attrs[name] = value
                values.parent.create_group(f"group_{n}").attrs[name] = value
    report = numbers("repack", source, "-o", target, "--codec", "portable", "--bound", "abs=1e-3",
                     ranks=2)["files"][0]
    exact = {field["path"] for field in report["fields"] if field["kept_exact_because"]}
    assert exact == {"/of_units/6"}
    tailrace("verify", source, target)


def test_chunks_of_an_index_stay_whatever_is_asked_of_all(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        for name in ["_i_table/x/sorted", "table_like"]:
            file.create_dataset(name, data=np.sort(np.random.default_rng(1).random((8, 4096)), 1),
                                chunks=(1, 1024), maxshape=(None, 4096))
    for way in [["--chunk", "64KiB"], ["--chunk", "8x64"], ["--publish=cloud"]]:
        done = tailrace("repack", source, "-o", target, "--force", *way, ranks=2)
        with h5py.File(target) as file:
            assert file["_i_table/x/sorted"].chunks == (1, 1024)
            assert file["table_like"].chunks != (1, 1024)
        assert ("PyTables locates" in " ".join(done.stderr.split())) == (way[0] == "--chunk")


def test_what_a_bound_leaves_exact_keeps_the_codec_of_all_readers(tmp_path):
    """--lossless-codec's default applies; auto, if requested, may choose another."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["count"] = np.arange(40000).reshape(200, 200)
        file["vertices"] = positions(20000)
        file["u"] = smooth((200, 200), 1)
    for words in (["--bound", "rel=1e-3"], ["--bound", "rel=1e-3", "--codec", "sz3"],
                  ["--target", "psnr=60"]):
        report = numbers("repack", source, "-o", target, "--force", *words)["files"][0]
        codecs = {field["path"]: field["codec"] for field in report["fields"]}
        assert codecs["/count"] == codecs["/vertices"] == "deflate" != codecs["/u"]
    report = numbers("repack", source, "-o", target, "--force", "--bound", "rel=1e-3",
                     "--lossless-codec", "auto")["files"][0]
    assert any(field["path"] == "/count" and field.get("candidates")
               for field in report["fields"])


@pytest.fixture
def grid(tmp_path):
    """Write values, integers, a mask and three coordinates, one of them below 4 KiB."""
    path = tmp_path / "grid.h5"
    with h5py.File(path, "w") as file:
        write(file, {"t2m": 280 + rough(64, 64), "land_mask": (rough(64, 64) > 0).astype("f4"),
                     "counts": np.arange(4096, dtype="i4").reshape(64, 64),
                     "lat": np.linspace(-90, 90, N), "lon": np.linspace(0, 360, N),
                     "lat_small": np.linspace(-90, 90, 64)})
        for name, unit in (("lat", "north"), ("lon", "east"), ("lat_small", "north")):
            file[name].attrs["units"] = f"degrees_{unit}"
    return path


@pytest.mark.parametrize("patterns,lossy", [
    (["*:bound=rel=1e-2"], {"t2m"}), (["l*:bound=rel=0.01"], set()),
    (["*:bound=abs=0.5"], {"t2m"}), (["[lt]*:codec=trz,preset=fast,bound=abs=0.1"], {"t2m"}),
    (["*:codec=zfp,rate=8"], {"t2m"}), (["*:codec=portable,bound=abs=0.1"], {"t2m"}),
    (["*:bound=abs=0.5,guard=minmax", "lat:bound=abs=0.1"], {"t2m", "lat"}),
    (["lat:bound=abs=0.1", "*:bound=abs=0.5"], {"t2m", "lat"}),
    (["lat:bound=none", "*:bound=abs=0.5"], {"t2m"}),
    (["land_mask:bound=abs=0.4", "lat_small:bound=abs=0.1"], {"land_mask", "lat_small"}),
])
def test_wildcards_give_bounds_to_values_alone(patterns, lossy, grid, tmp_path):
    target = tmp_path / "out.h5"
    asked = [word for pattern in patterns for word in ("--field", pattern)]
    done = tailrace("repack", grid, "-o", target, *asked, "--json", tmp_path / "r.json")
    fields = {field["path"][1:]: field for field in
              json.loads((tmp_path / "r.json").read_text())["files"][0]["fields"]}
    decoded = by_deflate(target)
    with h5py.File(grid) as before, h5py.File(decoded) as after:
        changed = {name for name in before
                   if before[name][...].tobytes() != after[name][...].tobytes()}
    assert changed == lossy
    if "lat" in lossy:
        assert fields["lat"]["absolute_bound"] == 0.1
    said = " ".join(done.stderr.split())
    for name, field in fields.items():
        reason = {"t2m": "", "counts": "integers", "land_mask": "mask"}.get(name, "coordinate")
        assert (f"/{name} ({reason}) becomes lossy, because" in said) == (
            name in lossy and name != "t2m"), said
        if name in lossy:
            assert field["kept_exact_because"] == ""
    if patterns[0].startswith("*") and len(patterns) == 1:
        summary = " ".join(done.stdout.split())
        assert "1 integers (/counts)" in summary and "1 mask (/land_mask)" in summary
        assert fields["lat"]["codec"] == fields["counts"]["codec"] == "deflate"


def test_integers_by_name_are_an_error(grid, tmp_path):
    done = tailrace("repack", grid, "-o", tmp_path / "out.h5", "--field", "counts:bound=abs=1",
                    code=2)
    assert '"/counts" holds integers' in " ".join(done.stderr.split())


def test_verify_holds_wildcards_to_values_alone(grid, tmp_path):
    """A coordinate that repack has kept exact is not within a wildcard's bound, but equal."""
    target, pattern = tmp_path / "out.h5", "*:bound=rel=1e-2"
    tailrace("repack", grid, "-o", target, "--field", pattern)
    tailrace("verify", grid, target, "--field", pattern)
    with h5py.File(target, "a") as file:
        file["lat"][7] += 0.01
    said = tailrace("verify", grid, target, "--field", pattern, code=1)
    assert "/lat" in said.stdout + said.stderr or "lat " in said.stdout
    assert tailrace("verify", grid, target, "--field", "lat:bound=abs=0.1").stdout
