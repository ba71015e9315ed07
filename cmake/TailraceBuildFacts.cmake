# What `tailrace --version` says of its own build: a header, written anew only where a fact changed.
# The commit is known where the sources are a checkout; a new one makes CMake run again.

set(tailrace_commit "none: not built from a checkout")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND "${GIT_EXECUTABLE}" describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(described)
    set(tailrace_commit "${described}")
  endif()
  if(EXISTS "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                 "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
  endif()
endif()
set(tailrace_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/build_facts.hpp" @ONLY CONTENT
     "// Made by cmake/TailraceBuildFacts.cmake.\n#pragma once\n\n\
inline constexpr const char* build_commit = \"@tailrace_commit@\";\n\
inline constexpr const char* build_compiler = \"@tailrace_compiler@\";\n\
inline constexpr const char* build_hdf5 = \"@TAILRACE_HDF5_VERSION@\";\n\
inline constexpr const char* build_type = \"@CMAKE_BUILD_TYPE@\";\n")
