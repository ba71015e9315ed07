# Compiling the sources of one folder as one (CMake's UNITY_BUILD): most of a file's time goes to
# headers that they share, and more than half of a build from nothing is saved. Whoever changes one
# file at a time may prefer -DTAILRACE_JOIN_SOURCES=OFF; what one command builds, the other does.
#
# The rule that comes of it: names in anonymous namespaces are unique in their folder; the compiler
# says so at once where they are not. No file of a folder is left out, except that files named mpi_*
# stand alone, since builds without MPI and Python's module _mpi tell them from the others, and files
# with compile definitions of their own, which CMake leaves alone.
#
# A joined source compiles without an include that its neighbours have. scripts/lint compiles each
# changed source alone, so that a missing include is found before a merge.

option(TAILRACE_JOIN_SOURCES "Compile the sources of a folder as one" ON)

# Join the sources of `target`, folder by folder. A folder that would take too long as one is cut in
# parts: each further argument is a regular expression, and the sources of a folder that match it,
# and none before it, are a part. By name, not by number, so that a new file moves no other one.
function(tailrace_join_sources target)
  if(NOT TAILRACE_JOIN_SOURCES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/mpi_[^/]*$")
  foreach(source ${sources})
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(folder "${path}" DIRECTORY)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set(part_index 0)
    foreach(part ${ARGN})
      math(EXPR part_index "${part_index} + 1")
      if(path MATCHES "${part}")
        string(APPEND group "_${part_index}")
        break()
      endif()
    endforeach()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
