# Options, compiler flags and the helpers that create our targets.
#
# Floating-point contraction is off everywhere: a fused multiply-add rounds once where the model of
# an error bound rounds twice, and has been seen to break bounds by 1 %.

# As a part of another project (add_subdirectory) Tailrace is its library alone, static unless
# BUILD_SHARED_LIBS says otherwise, and the build's kind and flags are that project's.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
  endif()

  # Line numbers suffice for a backtrace; full debug information costs a third of the build's time.
  if(NOT DEFINED CACHE{TAILRACE_FLAGS_SET} AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG" CACHE STRING "" FORCE)
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG" CACHE STRING "" FORCE)
    set(TAILRACE_FLAGS_SET ON CACHE INTERNAL "Our defaults are in; what the user sets later stays")
  endif()

  option(BUILD_SHARED_LIBS "Build libtailrace as a shared library" ON)
  option(TAILRACE_BUILD_CLI "Build the command line program tailrace" ON)
  option(TAILRACE_BUILD_BENCH "Build tailrace-bench" ON)
  option(TAILRACE_BUILD_EXAMPLES "Build the examples" ON)
  option(TAILRACE_BUILD_TESTS "Build the tests" ON)
elseif(NOT DEFINED BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS OFF)
endif()
option(TAILRACE_FILTER_ONLY "Leave the engine out of the Python wheel: filter plug-ins alone" OFF)
option(TAILRACE_FUZZ "Build the fuzzers, too; needs clang (preset asan, scripts/fuzz)" OFF)
option(TAILRACE_WERROR "Treat warnings in our code as errors" OFF)
set(TAILRACE_SANITIZE "" CACHE STRING "Sanitizers, for instance address,undefined or thread")
option(TAILRACE_UNDEFINED_EVERYWHERE "Look for undefined behaviour in the engine, too" OFF)
set(TAILRACE_DEFAULT_PLUGIN_PATH "" CACHE STRING
    "Folder that is searched last for HDF5 filter plug-ins; compiled in")

include(CheckCXXSourceCompiles)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# Installed programs find libtailrace beside them, and an HDF5 of the user's own where it was.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

find_program(TAILRACE_CCACHE ccache)
mark_as_advanced(TAILRACE_CCACHE)
if(TAILRACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths of sources are absolute, and those of joined ones (TailraceJoin.cmake), which lie in the
  # build folder, relative to it: so build folders can share what they compiled. The compiler's own
  # list of headers serves the cache: without it what is not there is preprocessed twice.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_BINARY_DIR}" "${TAILRACE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# Two builds of one commit are equal, bit for bit, wherever they lie and whenever they are made
# (scripts/check-reproducible): archives hold no times, programs find their libraries relative to
# themselves, and what is made from the sources is as old as they are (TailraceSbom.cmake). Paths of
# the sources stay in debug information and assertions unless they are mapped, which costs the
# compiler's cache what was compiled without: the preset `release` does it.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
  option(TAILRACE_MAP_PATHS "Keep the folders of sources and build out of what is compiled" OFF)
  if(TAILRACE_MAP_PATHS)
    # The last one that fits is taken, and the build may lie within the sources.
    add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
                        "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(language C CXX Fortran)
      set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
      set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> qD <TARGET> <LINK_FLAGS> <OBJECTS>")
      set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
    endforeach()
  endif()
endif()

# g++ collects its own garbage when its memory has grown by a part: for these sources that takes a
# seventh of the compilation. With this it begins at 512 MiB, which most compilations never reach.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=524288>")
endif()

# Flags that change the code; every object has them.
add_compile_options(-ffp-contract=off)
if(TAILRACE_SANITIZE)
  add_compile_options(-fsanitize=${TAILRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TAILRACE_SANITIZE})
  if(TAILRACE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_definitions(__SANITIZE_ADDRESS__=1)  # As g++ does by itself.
  endif()
endif()
if(TAILRACE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Each library and program holds the engine. If each function has a section of its own, the linker
# leaves out those that the library or program does not call.
set(TAILRACE_OWN_SECTIONS "")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT TAILRACE_SANITIZE AND NOT TAILRACE_FUZZ)
  set(TAILRACE_OWN_SECTIONS -ffunction-sections -fdata-sections)
  add_link_options("LINKER:--gc-sections")
endif()

# Flags that only talk to us, and where our own code finds its headers.
add_library(tailrace_flags INTERFACE)
target_compile_options(tailrace_flags INTERFACE
                       -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       $<$<BOOL:${TAILRACE_WERROR}>:-Werror>)
target_include_directories(tailrace_flags INTERFACE
                           "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include"
                           "${PROJECT_SOURCE_DIR}/frontends" "${PROJECT_SOURCE_DIR}/trz/src"
                           "${PROJECT_SOURCE_DIR}/trz/include")
target_compile_definitions(tailrace_flags INTERFACE
                           TAILRACE_VERSION="${PROJECT_VERSION}")

# libstdc++ 12's own std::stable_sort calls what that library calls deprecated, and clang 19 says so
# to every program that sorts. There alone no deprecation is warned of: no finer switch reaches it.
function(tailrace_quiet_stable_sort)
  set(CMAKE_REQUIRED_FLAGS -Werror=deprecated-declarations)
  check_cxx_source_compiles("
#include <algorithm>
int main() { int pair[] = {2, 1}; std::stable_sort(pair, pair + 2); return pair[0]; }"
                            TAILRACE_QUIET_STABLE_SORT)
  if(NOT TAILRACE_QUIET_STABLE_SORT)
    target_compile_options(tailrace_flags INTERFACE
                           $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
  endif()
endfunction()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  tailrace_quiet_stable_sort()
endif()

# An object library of our own code that needs no more than the compressors: the codecs and what they
# stand on. Its commands are the same with MPI and without, in the wheel and in the plug-ins, so
# that ccache compiles it once for all of them. A folder that is still empty is fine.
function(tailrace_codec_library name)
  if(NOT ARGN)
    file(WRITE "${PROJECT_BINARY_DIR}/empty.cpp" "// Stands in for a folder without sources.\n")
    set(ARGN "${PROJECT_BINARY_DIR}/empty.cpp")
  endif()
  add_library(${name} OBJECT ${ARGN})
  target_compile_definitions(${name} PRIVATE TAILRACE_BUILDING)
  target_compile_options(${name} PRIVATE ${TAILRACE_OWN_SECTIONS})
  target_link_libraries(${name} PRIVATE tailrace_flags PUBLIC tailrace_codec_requirements)
endfunction()

# The same with all that the engine needs.
function(tailrace_object_library name)
  tailrace_codec_library(${name} ${ARGN})
  # Only the file that uses it gets the default folder of plug-ins, so that build folders which
  # differ in it share the rest. Properties of sources hold per directory, hence here.
  set_source_files_properties(
    "${PROJECT_SOURCE_DIR}/src/hdf5/plugin_library.cpp" PROPERTIES COMPILE_DEFINITIONS
    "TAILRACE_DEFAULT_PLUGIN_PATH=\"${TAILRACE_DEFAULT_PLUGIN_PATH}\"")
  target_link_libraries(${name} PUBLIC tailrace_requirements)
endfunction()

# Rooms where no value of a field passes, or only in one simple loop, compile with -Og and without line
# numbers where the build has -O2: that halves their time (-O0 takes longer, since templates are not
# inlined). The preset `release`, measurements (lab/bench/README.md) and builds of packages optimise them, too.
option(TAILRACE_OPTIMISE_EVERYTHING "Compile all code at the build type's level" OFF)
string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" tailrace_level_flags)
set(tailrace_quick_level "")
if(PROJECT_IS_TOP_LEVEL AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo"
   AND NOT TAILRACE_OPTIMISE_EVERYTHING AND "${${tailrace_level_flags}}" MATCHES "-O2")
  set(tailrace_quick_level -Og -g0)
endif()
function(tailrace_compile_quickly target)
  target_compile_options(${target} PRIVATE ${tailrace_quick_level})
endfunction()
