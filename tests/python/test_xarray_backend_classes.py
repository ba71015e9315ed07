"""xarray's own tests of its netCDF-4 backends, run with this engine.

xarray's wheel has them, and runs them with netCDF4 and h5netcdf. Writing uses
tailrace.write_dataset, because to_netcdf does not accept other packages' engines. Failing tests are
listed with the reasons, and must fail, so that the list stays current.
"""

import contextlib

import pytest

import python_package

tailrace = python_package.load()
backends = pytest.importorskip("xarray.tests.test_backends")
pytest.importorskip("netCDF4")

#: Tests of xarray that fail here and pass with h5netcdf, with the reasons.
FAILS = {
    "test_roundtrip_None_variable": "a variable named None is refused, but in a DataArray",
    "test_encoding_enum__no_fill_value": "enums are written as integers",
    "test_encoding_enum__multiple_variable_with_enum": "enums are written as integers",
}
#: Tests that also fail with h5netcdf.
FAILS_THERE = {"test_byte_attrs": "attributes of bytes come back without zero bytes"}
#: Tests that cannot run here: they need fixtures of xarray's conftest, or to_netcdf(engine=).
NOT_RUN = ("test_roundtrip_timedelta_data_via_dtype", "test_vectorized_indexing_negative_step",
           "test_create_default_indexes")


class TestTailrace(backends.NetCDF4Base):
    engine = "tailrace"

    def save(self, dataset, path, **keywords):
        for word in ("engine", "format"):
            keywords.pop(word, None)
        return tailrace.write_dataset(dataset, path, **keywords)

    @contextlib.contextmanager
    def roundtrip(self, data, save_kwargs=None, open_kwargs=None, allow_cleanup_failure=False):
        with backends.create_tmp_file(allow_cleanup_failure=allow_cleanup_failure) as path:
            self.save(data, path, **(save_kwargs or {}))
            with self.open(path, **(open_kwargs or {})) as dataset:
                yield dataset

    @contextlib.contextmanager
    def create_store(self):
        """Create a store of h5netcdf for tests that need a store of xarray instead of a file."""
        with backends.create_tmp_file() as path, \
                backends.backends.H5NetCDFStore.open(path, "w") as store:
            yield store


for name in NOT_RUN:
    assert hasattr(TestTailrace, name), name
    setattr(TestTailrace, name, None)
for name, reason in (FAILS | FAILS_THERE).items():
    setattr(TestTailrace, name,
            pytest.mark.xfail(strict=True, reason=reason)(getattr(TestTailrace, name)))


def test_at_least_95_percent():
    run = [name for name in dir(TestTailrace)
           if name.startswith("test") and getattr(TestTailrace, name) is not None]
    run = [name for name in run if name not in FAILS_THERE]
    assert len(run) >= 90 and len(FAILS) <= 0.05 * len(run)
