# The engine of the Python package: two extension modules.
#
#   _engine  everything but MPI. Linked to the one serial HDF5, which Python loads out of the sight
#            of other libraries, so that h5py's and netCDF4's own HDF5 may be in the same process; or
#            with one inside, of which engine.map says what filter plug-ins find by name
#            (docs/adr/0017-one-hdf5-each-in-python.md).
#   _mpi     communicators: the few files that call MPI, where MPI was found. Loaded when a program
#            passes one; it hands Comm objects to _engine (docs/adr/0016-mpi-by-a-bridge.md).
#
# Beside an ordinary build they lie in lib/python, where the tests find them (TAILRACE_ENGINE_DIR).
# Installing it puts the whole package, as the wheel has it, into TAILRACE_PYTHON_INSTALL_DIR.

set(python_folder "${PROJECT_SOURCE_DIR}/frontends/python")
set(python_output "${PROJECT_BINARY_DIR}/lib/python")

if(TAILRACE_PYTHON AND NOT TAILRACE_WHEEL)
  # Below /usr Debian's Python looks for packages in a folder of all its versions.
  set(python_place "lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages")
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS "/etc/debian_version")
    set(python_place "lib/python3/dist-packages")
  endif()
  set(TAILRACE_PYTHON_INSTALL_DIR "${python_place}" CACHE STRING
      "Where the Python package is installed, relative to the prefix")
  set(python_package "${TAILRACE_PYTHON_INSTALL_DIR}/tailrace")
else()
  set(python_package ".")  # of the wheel, which is the package
endif()

# One wheel for Python 3.12 and all that follow, where pip's build asks for it
# (--config-settings=wheel.py-api=cp312).
set(python_abi "")
if(SKBUILD AND SKBUILD_SABI_VERSION)
  set(python_abi STABLE_ABI)
endif()

if(TAILRACE_PYTHON)
  file(GLOB python_sources CONFIGURE_DEPENDS "${python_folder}/engine_*.cpp")
  # The engine as in a build without MPI; what calls MPI goes to the other module.
  nanobind_add_module(tailrace_python ${python_abi} NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE
                      NOSTRIP ${python_sources}
                      ${TAILRACE_CORE_OBJECTS} $<TARGET_OBJECTS:tailrace_codecs>
                      $<TARGET_OBJECTS:tailrace_engine> $<TARGET_OBJECTS:tailrace_deciding>
                      $<TARGET_OBJECTS:tailrace_without_mpi> ${tailrace_container_OBJECTS}
                      ${TAILRACE_VERBS_OBJECTS} $<TARGET_OBJECTS:tailrace_report>
                      ${TAILRACE_TRZ_OBJECTS} ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
  if(TARGET nanobind-static AND TAILRACE_JOIN_SOURCES AND NOT TAILRACE_WHEEL)
    # nanobind's own sources share most of their headers, and can be compiled as one.
    set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  set_target_properties(tailrace_python PROPERTIES OUTPUT_NAME _engine
                        LIBRARY_OUTPUT_DIRECTORY "${python_output}"
                        INSTALL_RPATH "" BUILD_WITH_INSTALL_RPATH ON)
  target_link_libraries(tailrace_python PRIVATE tailrace_flags tailrace_python_requirements)
  if(TAILRACE_HDF5_IS_STATIC AND TAILRACE_VERSION_SCRIPT)
    set(engine_names "-Wl,--version-script=${python_folder}/engine.map")
    set_target_properties(tailrace_python PROPERTIES LINK_DEPENDS "${python_folder}/engine.map")
  else()
    set(engine_names -Wl,--exclude-libs,ALL)
  endif()
  target_link_options(tailrace_python PRIVATE ${engine_names} -Wl,-Bsymbolic -Wl,--gc-sections)
  install(TARGETS tailrace_python LIBRARY DESTINATION "${python_package}" COMPONENT python)

  if(TAILRACE_MPI)
    file(GLOB bridge_sources CONFIGURE_DEPENDS "${python_folder}/mpi_*.cpp")
    nanobind_add_module(tailrace_python_mpi ${python_abi} NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE NOSTRIP
                        ${bridge_sources} "${PROJECT_SOURCE_DIR}/src/exec/self_comm.cpp"
                        ${TAILRACE_CORE_OBJECTS} $<TARGET_OBJECTS:tailrace_with_mpi>)
    set_target_properties(tailrace_python_mpi PROPERTIES OUTPUT_NAME _mpi
                          LIBRARY_OUTPUT_DIRECTORY "${python_output}"
                          INSTALL_RPATH "" BUILD_WITH_INSTALL_RPATH ON)
    target_link_libraries(tailrace_python_mpi PRIVATE tailrace_flags tailrace_requirements tailrace_mpi)
    target_link_options(tailrace_python_mpi PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
                        -Wl,--gc-sections)
    install(TARGETS tailrace_python_mpi LIBRARY DESTINATION "${python_package}" COMPONENT python)
  endif()
endif()

if(TAILRACE_PYTHON AND NOT TAILRACE_WHEEL)
  # Beside the modules: what xarray, numcodecs and zarr need to find what is ours, as if it were
  # installed (pyproject.toml).
  set(folder "${python_output}/tailrace-${PROJECT_VERSION}.dist-info")
  file(CONFIGURE OUTPUT "${folder}/METADATA"
       CONTENT "Metadata-Version: 2.1\nName: tailrace\nVersion: ${PROJECT_VERSION}\n")
  file(CONFIGURE OUTPUT "${folder}/entry_points.txt"
       CONTENT "[xarray.backends]\ntailrace = tailrace._xarray:TailraceBackend\n\
[numcodecs.codecs]\ntrz = tailrace.numcodecs:Trz\nxor = tailrace.numcodecs:Xor\n\
[zarr.codecs]\ntailrace.trz = tailrace.zarr:Trz\ntailrace.xor = tailrace.zarr:Xor\n\
numcodecs.trz = tailrace.zarr:BytesTrz\nnumcodecs.xor = tailrace.zarr:BytesXor\n")
  install(DIRECTORY "${folder}" DESTINATION "${TAILRACE_PYTHON_INSTALL_DIR}" COMPONENT python)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/tailrace"
          DESTINATION "${TAILRACE_PYTHON_INSTALL_DIR}" COMPONENT python
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
  install(TARGETS h5trz h5xor LIBRARY DESTINATION "${python_package}/plugins" COMPONENT python)
endif()

if(TAILRACE_PYTHON)
  tailrace_join_sources(tailrace_python)
endif()

if(TAILRACE_WHEEL OR TAILRACE_PYTHON)
  # What the package says of its own build.
  configure_file("${PROJECT_SOURCE_DIR}/cmake/_build.py.in" "${PROJECT_BINARY_DIR}/_build.py" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/_build.py" DESTINATION "${python_package}" COMPONENT python)
endif()

if(TAILRACE_WHEEL)
  if(TAILRACE_HDF5_IS_STATIC)
    list(GET SERIAL_HDF5_INCLUDE_DIRS 0 hdf5_include)
    file(GLOB hdf5_terms "${hdf5_include}/../share/hdf5-terms/COPYING*")
    install(FILES ${hdf5_terms} DESTINATION "${SKBUILD_METADATA_DIR}/licenses")
  endif()
  add_custom_target(tailrace_wheel)
  foreach(target h5trz h5xor tailrace_python tailrace_python_mpi)
    if(TARGET ${target})
      add_dependencies(tailrace_wheel ${target})
    endif()
  endforeach()
endif()
