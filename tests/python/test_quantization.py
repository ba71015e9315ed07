"""Notes about an earlier rounding are shown, and finer bounds cause a warning."""

import shutil
import subprocess

import netCDF4
import numpy as np
import pytest

from cli_tools import numbers, smooth, tailrace

NSB, NSD = "quantization_nsb", "quantization_nsd"


def ocean(path, attributes=None, container=None, form="NETCDF4", group="", **keywords):
    """Write `ta` of 250 to 300 with `attributes`, and CF's quantization variable `container`."""
    values = 275 + 8 * smooth((40, 60))
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("y", 40)
        file.createDimension("x", 60)
        if container:
            file.createVariable("rounded", "S1", ()).setncatts(container)
        variable = (file.createGroup(group) if group else file).createVariable(
            "ta", "f4", ("y", "x"), **keywords)
        variable.setncatts(attributes or {})
        variable[:] = values
    return path


def stated(path):
    """Return the output of info, as JSON and as text."""
    (field,) = [field for field in numbers("info", path)["fields"]
                if field["path"].endswith("/ta")]
    return field["quantization"], " ".join(tailrace("info", path).stdout.split())


@pytest.mark.parametrize("mode, algorithm, unit", [
    ("BitGroom", "bitgroom", "digits"), ("BitRound", "bitround", "bits"),
    ("GranularBitRound", "granular_bitround", "digits")])
def test_what_the_netcdf_library_has_rounded(mode, algorithm, unit, tmp_path):
    if not netCDF4.__has_quantization_support__:
        pytest.skip("a netCDF library that does not round")
    path = ocean(tmp_path / "in.nc", zlib=True, significant_digits=4, quantize_mode=mode)
    found, words = stated(path)
    assert found == {"algorithm": algorithm, "implementation": None, "kept": 4, "unit": unit}
    assert f"ta was rounded: {algorithm}, 4 " in words


@pytest.mark.parametrize("option, algorithm, unit", [
    ("0", "bitgroom", "digits"), ("4", "granular_bitround", "digits"), ("8", "bitround", "bits")])
def test_what_nco_has_rounded(option, algorithm, unit, tmp_path):
    if shutil.which("ncks") is None:
        pytest.skip("no ncks")
    source, path = ocean(tmp_path / "plain.nc"), tmp_path / "in.nc"
    done = subprocess.run(["ncks", "-4", "-h", f"--baa={option}", "--ppc", "ta=5", source, path],
                          capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        pytest.skip("an ncks that does not round")
    found, _ = stated(path)
    assert found == {"algorithm": algorithm, "implementation": None, "kept": 5, "unit": unit}
    copy = tmp_path / "copy.nc"
    subprocess.run(["nccopy", path, copy], check=True, timeout=600)
    assert stated(copy)[0] == found


@pytest.mark.parametrize("form, group", [("NETCDF4", ""), ("NETCDF4", "model"),
                                         ("NETCDF3_CLASSIC", "")])
def test_the_variable_that_cf_asks_for(form, group, tmp_path):
    container = {"algorithm": "granular_bitround", "implementation": "NCO version 5.2.7"}
    path = ocean(tmp_path / "in.nc", {"quantization": "rounded", NSD: np.int32(4)}, container,
                 form, group)
    found, words = stated(path)
    assert found == {"algorithm": "granular_bitround", "implementation": "NCO version 5.2.7",
                     "kept": 4, "unit": "digits"}
    assert "granular_bitround, 4 significant digits (NCO version 5.2.7)" in words


@pytest.mark.parametrize("attributes", [
    {}, {NSB: np.int32(0)}, {NSB: np.int32(53)}, {NSD: np.float32(2.5)}, {NSD: "four"},
    {NSD: np.int32([3, 4])}, {"quantization": "rounded"}, {"quantization": "gone"}])
def test_what_says_nothing_is_taken_for_nothing(attributes, tmp_path):
    found, words = stated(ocean(tmp_path / "in.nc", attributes, {"algorithm": "bitround"}))
    assert found is None and "was rounded" not in words


def test_a_variable_that_is_not_there_leaves_the_number(tmp_path):
    found, _ = stated(ocean(tmp_path / "in.nc", {"quantization": "gone", NSB: np.int32(9)}))
    assert found == {"algorithm": None, "implementation": None, "kept": 9, "unit": "bits"}


CF_BITS = {"quantization": "rounded", NSB: np.int32(7)}
#: Bounds near the largest change by each rounding, for values of which some exceed 256. Bits: half
#: of 2^(8 - 7), which is 1. Digits: half a unit of the fourth digit or first decimal, both 0.05.
DOUBTED = [
    (CF_BITS, "abs=1", "512", None), (CF_BITS, "abs=0.9", "256", "256"),
    (CF_BITS, "abs=0.4", "128", "128"),
    (CF_BITS, "rel=0.001", "and more", "and more"), (CF_BITS, "rel=0.1", None, None),
    (CF_BITS, "pw_rel=0.003", "values may", "values may"), (CF_BITS, "pw_rel=0.004", None, None),
    ({NSD: np.int32(4)}, "abs=0.06", "1000", None), ({NSD: np.int32(4)}, "abs=0.04", "100", "100"),
    ({"least_significant_digit": np.int32(1)}, "abs=0.06", None, None),
    ({"least_significant_digit": np.int32(1)}, "abs=0.04", "values may", "values may"),
]


@pytest.mark.parametrize("attributes, bound, of_repack, of_verify", DOUBTED)
def test_a_bound_finer_than_the_rounding_is_doubted(attributes, bound, of_repack, of_verify,
                                                    tmp_path):
    """repack knows magnitudes only if the bound needs them; verify always knows them."""
    container = {"algorithm": "bitround", "implementation": "model 3"}
    source, target = ocean(tmp_path / "in.nc", attributes, container), tmp_path / "out.nc"
    report = numbers("repack", source, "-o", target, "--bound", bound, "--again",
                     ranks=2)["files"][0]
    (field,) = report["fields"]
    assert field["path"] == "/ta"
    assert field["quantization"]["kept"] == int(list(attributes.values())[-1])
    doubts = [remark for remark in report["remarks"] if "rounded" in remark]
    verified = numbers("verify", source, target, ranks=2)
    for found, expected in ((doubts, of_repack), (verified["doubts"], of_verify)):
        assert len(found) == (expected is not None), found
        if expected:
            assert "/ta" in found[0] and f" {expected} " in found[0]
    assert verified["n_failed"] == 0
    assert verified["fields"][0]["quantization"]["kept"] == field["quantization"]["kept"]
    words = " ".join(tailrace("verify", source, target).stdout.split())
    assert "ta was rounded: " in words
    assert ("may already be rounded by more than" in words) == (of_verify is not None)


def test_what_stays_exact_is_not_doubted_and_keeps_its_words(tmp_path):
    container = {"algorithm": "bitround", "implementation": "model 3"}
    source, target = ocean(tmp_path / "in.nc", CF_BITS, container), tmp_path / "out.nc"
    report = numbers("repack", source, "-o", target, "--publish=cmip7")["files"][0]
    assert not [remark for remark in report["remarks"] if "rounded" in remark]
    assert stated(target)[0] == stated(source)[0]
    with netCDF4.Dataset(target) as file:
        assert file["ta"].getncattr("quantization") == "rounded"
        assert file["ta"].getncattr(NSB) == 7
        assert file["rounded"].algorithm == "bitround"


@pytest.mark.parametrize("codec, bound", [("trz", "abs=0.01"), ("portable", "pw_rel=1e-3")])
def test_a_bound_is_not_called_a_quantization(codec, bound, tmp_path):
    """Bounds are none of CF's four algorithms, so that no value of `algorithm` would be true."""
    source, target = ocean(tmp_path / "in.nc"), tmp_path / "out.nc"
    tailrace("repack", source, "-o", target, "--bound", bound, "--codec", codec)
    with netCDF4.Dataset(target) as file:
        names = [name for name in file["ta"].ncattrs() if "uantiz" in name]
        assert names == [] and list(file.variables) == ["ta"]
        assert file["ta"].tailrace_bound_mode == bound.split("=")[0]
