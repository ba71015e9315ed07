# Debian packages by `cpack -G DEB`: programs and libraries, what compiling needs, the filters that
# readers without Tailrace need, and the Python package. scripts/check-deb builds them and tries them
# in a clean root.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tailrace)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Tailrace developers <tailrace@users.noreply.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "parallel compressed output into one ordinary HDF5 file")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified dev plugins)
if(TAILRACE_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")

set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME tailrace)
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION
    "Programs and libraries: repack, concat, verify, export; PnetCDF and HDF5 programs unchanged.")
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_RECOMMENDS tailrace-hdf5-plugins)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtailrace-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, the CMake package and pkg-config's files.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "tailrace (= ${PROJECT_VERSION}), tailrace-hdf5-plugins (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PLUGINS_PACKAGE_NAME tailrace-hdf5-plugins)
set(CPACK_COMPONENT_PLUGINS_DESCRIPTION "The codecs trz and xor as filters of any HDF5.")
if(TAILRACE_PYTHON)
  # The modules are of one version of Python.
  math(EXPR python_next_minor "${Python_VERSION_MINOR} + 1")
  set(python_minor "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})")
  string(APPEND python_minor ", python3 (<< ${Python_VERSION_MAJOR}.${python_next_minor})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${python_minor}, python3-numpy")
endif()
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-tailrace)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "The Python package: netCDF-4 and HDF5 files within error bounds, xarray's engine, zarr's codecs.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-h5py, python3-xarray, python3-mpi4py")
include(CPack)
