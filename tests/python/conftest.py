"""For all tests: the order of imports that plug-ins ask for, and a folder for mpiexec.

hdf5plugin binds its plug-ins to the HDF5 that the process has when it is imported. That must
be h5py's: netCDF4 brings another one, with which h5py cannot create datasets of these plug-ins.

What the engine keeps for its user (how fast this core is) goes to a folder of this process's own.

What mpiexec keeps while it runs goes to a folder of this process's own. Open MPI's default one is
made and removed by every mpiexec of the machine, and one that starts while another ends now and
then finds it half gone: "mkdir ... File exists".
"""

import atexit
import os
import shutil
import tempfile

import h5py  # noqa: F401
import hdf5plugin  # noqa: F401
import pytest

_sessions = tempfile.mkdtemp(prefix="tailrace_mpi_")
atexit.register(shutil.rmtree, _sessions, ignore_errors=True)
# Names of Open MPI 4, then of Open MPI 5. Set before cli_tools copies the environment.
os.environ["OMPI_MCA_orte_tmpdir_base"] = _sessions
os.environ["PRTE_MCA_prte_tmpdir_base"] = _sessions
os.environ["XDG_CACHE_HOME"] = os.path.join(_sessions, "cache")


@pytest.fixture
def whole_sentences(monkeypatch):
    """Without COLUMNS, which pytest-xdist tells its workers and pipes would be held to."""
    from cli_tools import ENVIRONMENT  # noqa: PLC0415

    monkeypatch.delitem(ENVIRONMENT, "COLUMNS", raising=False)
