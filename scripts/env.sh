# The environment in which everything of this repository runs. To be sourced, not run.
#
# Sets: preset, build_dir, venv, PYTHON, TAILRACE (the command line program), PATH,
# HDF5_PLUGIN_PATH, and what Open MPI needs to start more ranks than cores, also as root in a
# container, without waiting ranks burning the cores of their neighbours. TAILRACE_PRESET chooses
# another CMake preset.

repo="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
preset="${TAILRACE_PRESET:-default}"
if [ "$preset" = default ]; then build_dir="$repo/build"; else build_dir="$repo/build/$preset"; fi
venv="$repo/build/venv"
PYTHON="$venv/bin/python"
TAILRACE="$build_dir/bin/tailrace"
PATH="$build_dir/bin:$venv/bin:$PATH"
export PYTHON TAILRACE PATH

# The folder of the hdf5plugin wheel, for h5dump and friends; empty before the set-up. A folder of
# the user's own comes first.
plugin_dir="$(compgen -G "$venv"/lib/python3.\*/site-packages/hdf5plugin/plugins || true)"
if [ -n "$plugin_dir" ]; then
  case ":${HDF5_PLUGIN_PATH:-}:" in
    *":$plugin_dir:"*) ;;
    *) export HDF5_PLUGIN_PATH="${HDF5_PLUGIN_PATH:+$HDF5_PLUGIN_PATH:}$plugin_dir" ;;
  esac
fi

# Names of Open MPI 4, then of Open MPI 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
