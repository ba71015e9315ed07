# The environment in which everything of this repository runs. To be sourced, not run.
#
# Sets: preset, build_dir, venv, plugin_dir, PYTHON, TAILRACE (the command line program), PATH, and
# what Open MPI needs to start more ranks than cores, also as root in a container, without waiting
# ranks burning the cores of their neighbours. TAILRACE_PRESET chooses another CMake preset.

repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
preset="${TAILRACE_PRESET:-default}"
if [ "$preset" = default ]; then build_dir="$repo/build"; else build_dir="$repo/build/$preset"; fi
venv="$repo/build/venv"
PYTHON="$venv/bin/python"
TAILRACE="$build_dir/bin/tailrace"
PATH="$build_dir/bin:$venv/bin:$PATH"
export PYTHON TAILRACE PATH

# The plug-ins of the hdf5plugin wheel; empty before the set-up. Not exported as HDF5_PLUGIN_PATH:
# h5py has an HDF5 of its own, and a plug-in that it loads by that path calls another one when a
# dataset is created ("error during user callback"). hdf5plugin loads them rightly by itself.
plugin_dir="$(compgen -G "$venv"/lib/python3.\*/site-packages/hdf5plugin/plugins || true)"

# Python stores compiled modules below build/, also for users who want none beside the sources. The
# tests start hundreds of programs, and each would compile what it imports: 1.5 s for xarray.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$repo/build/pycache"

# Names of Open MPI 4, then of Open MPI 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
