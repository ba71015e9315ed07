# SPDX-License-Identifier: BSD-3-Clause

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Tailrace(CMakePackage):
    """Compresses the fields of an MPI program and writes them at the same time, from all ranks,
    into one ordinary HDF5 or netCDF-4 file that every stock tool reads."""

    # The sources are the checkout that this recipe lies in, until there is a place to fetch from.
    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("BSD-3-Clause", checked_by="the Tailrace developers")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("mpi", default=True, description="Ranks write one file together")
    variant("fortran", default=True, description="The Fortran module")
    variant("shared", default=True, description="libtailrace as a shared library")
    variant("charts", default=True, description="Figures of profile, schedule and simulate")
    variant("tools", default=True, description="The command line program tailrace")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.24:", type="build")
    depends_on("pkgconfig", type="build")

    # Rank 0 alone writes metadata: a parallel HDF5 would start an MPI of its own.
    depends_on("hdf5@1.10.8:+hl~mpi")
    depends_on("mpi@3:", when="+mpi")
    depends_on("libdeflate")
    depends_on("zstd")
    depends_on("zlib-api")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("cli11@2.1:", type="build", when="+tools")
    depends_on("cairo@1.14:+png+svg", when="+charts")

    # C++20, and what TS 29113 asks of descriptors of Fortran arrays.
    conflicts("%gcc@:11", msg="Tailrace needs C++20 as g++ 12 has it")
    conflicts("%clang@:13", msg="Tailrace needs C++20 as clang 14 has it")

    def cmake_args(self):
        return [
            self.define_from_variant("TAILRACE_MPI", "mpi"),
            self.define_from_variant("TAILRACE_FORTRAN", "fortran"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("TAILRACE_CAIRO", "charts"),
            self.define_from_variant("TAILRACE_BUILD_CLI", "tools"),
            self.define("TAILRACE_BUILD_BENCH", False),
            self.define("TAILRACE_BUILD_EXAMPLES", False),
            self.define("TAILRACE_BUILD_TESTS", False),
            self.define("TAILRACE_PYTHON", False),
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]

    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hdf5.plugin)

    def test_version(self):
        """the program starts and says what it is"""
        if self.spec.satisfies("~tools"):
            raise SkipTest("built without the program")
        program = which(self.prefix.bin.tailrace, required=True)
        assert "tailrace " in program("--version", output=str)
