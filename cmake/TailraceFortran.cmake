# The Fortran module: libtailrace_fortran and tailrace.mod, where there is a Fortran compiler whose
# descriptors of arrays (ISO_Fortran_binding.h) the C compiler can read, too.

# Another project's languages are its own business.
set(fortran_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(fortran_default AUTO)
endif()
set(TAILRACE_FORTRAN ${fortran_default} CACHE STRING
    "Build the Fortran module: AUTO (if there is a compiler), ON, OFF")
set_property(CACHE TAILRACE_FORTRAN PROPERTY STRINGS AUTO ON OFF)

set(TAILRACE_FORTRAN_FOUND OFF)
if(NOT TAILRACE_FORTRAN)
  set(TAILRACE_FORTRAN_SUMMARY "off")
  return()
endif()
include(CheckLanguage)
check_language(Fortran)
if(NOT CMAKE_Fortran_COMPILER)
  set(TAILRACE_FORTRAN_SUMMARY "none (no Fortran compiler: gfortran)")
  if(NOT TAILRACE_FORTRAN STREQUAL "AUTO")
    message(FATAL_ERROR "TAILRACE_FORTRAN is ${TAILRACE_FORTRAN}, but there is no Fortran compiler "
                        "(Debian: gfortran)")
  endif()
  return()
endif()
enable_language(Fortran)

# gfortran keeps the path that line markers name in messages of the run time, and no option maps it:
# without markers it is the preprocessed file's, relative to the build.
if(TAILRACE_MAP_PATHS AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  string(REPLACE " -E " " -E -P " CMAKE_Fortran_PREPROCESS_SOURCE
         "${CMAKE_Fortran_PREPROCESS_SOURCE}")
endif()

# The header belongs to the Fortran compiler; gcc looks where gfortran has it, others do not.
execute_process(COMMAND "${CMAKE_Fortran_COMPILER}" -print-file-name=include/ISO_Fortran_binding.h
                OUTPUT_VARIABLE binding_header ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
cmake_path(GET binding_header PARENT_PATH binding_folder)
find_path(TAILRACE_FORTRAN_BINDING ISO_Fortran_binding.h HINTS "${binding_folder}")
mark_as_advanced(TAILRACE_FORTRAN_BINDING)
if(NOT TAILRACE_FORTRAN_BINDING)
  set(TAILRACE_FORTRAN_SUMMARY "none (${CMAKE_Fortran_COMPILER} has no ISO_Fortran_binding.h)")
  if(NOT TAILRACE_FORTRAN STREQUAL "AUTO")
    message(FATAL_ERROR "TAILRACE_FORTRAN is ${TAILRACE_FORTRAN}, but ${CMAKE_Fortran_COMPILER} has "
                        "no ISO_Fortran_binding.h (Fortran 2018; gfortran 9 and newer have it)")
  endif()
  return()
endif()
set(TAILRACE_FORTRAN_FOUND ON)
set(TAILRACE_FORTRAN_SUMMARY "${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}")

add_library(tailrace_fortran frontends/fortran/tailrace.f90 frontends/fortran/fortran_bridge.c)
add_library(tailrace::tailrace_fortran ALIAS tailrace_fortran)
set(TAILRACE_FORTRAN_MODULES "${PROJECT_BINARY_DIR}/fortran")
set(fortran_flags -Wall -Wextra $<$<BOOL:${TAILRACE_WERROR}>:-Werror>)
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  list(APPEND fortran_flags -std=f2018 -Wpedantic)
endif()
target_compile_options(tailrace_fortran PRIVATE
                       "$<$<COMPILE_LANGUAGE:Fortran>:${fortran_flags}>"
                       "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>"
                       "$<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${TAILRACE_WERROR}>>:-Werror>")
# Behind the compiler's own folders: the one of the header has more of that compiler's.
set_source_files_properties(frontends/fortran/fortran_bridge.c PROPERTIES COMPILE_OPTIONS
                            "-idirafter;${TAILRACE_FORTRAN_BINDING}")
set_target_properties(tailrace_fortran PROPERTIES
                      C_STANDARD 11 C_VISIBILITY_PRESET default
                      VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      Fortran_MODULE_DIRECTORY "${TAILRACE_FORTRAN_MODULES}"
                      LINKER_LANGUAGE Fortran)
target_include_directories(tailrace_fortran PRIVATE frontends/fortran INTERFACE
                           $<BUILD_INTERFACE:${TAILRACE_FORTRAN_MODULES}>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tailrace/fortran>)
target_link_libraries(tailrace_fortran PUBLIC tailrace)
if(TAILRACE_MPI)
  target_compile_definitions(tailrace_fortran PRIVATE
                             TAILRACE_WITH_MPI=1 OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_link_libraries(tailrace_fortran PRIVATE MPI::MPI_C)
  # Of the examples and tests; the module itself needs no MPI of Fortran's.
  find_package(MPI QUIET COMPONENTS Fortran)
endif()

install(TARGETS tailrace_fortran EXPORT tailraceTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(FILES "${TAILRACE_FORTRAN_MODULES}/tailrace.mod"
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tailrace/fortran COMPONENT dev)
