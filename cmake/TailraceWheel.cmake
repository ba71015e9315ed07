# What the Python wheel compiles: half of `pip install .` was spent on what is left out here. The
# rest is compiled folder by folder (TailraceJoin.cmake).
#
#   TAILRACE_WHEEL_OMITS  sources that nothing in the wheel calls: the C API, concatenation (but its
#                         check, which verify uses), all verbs but verify and info.
#                         The modules fail to load if one of them is needed after all.
#
# Optimised as the programs are, -O2 (trz and xor have -O3), without debug information.

set(TAILRACE_WHEEL_OMITS
    "/frontends/c/[^/]*$"
    "/src/concat/([^/]*|hdf5/[^/]*)$"
    "/verbs/(book_file|concat_request|element_bytes|export_files|field_roles|kept_user_block)\\.cpp$"
    "/verbs/(lay_in_front|repack|repack_kept|repack_memory|repack_plan)\\.cpp$"
    "/report/(html_page|report_json)\\.cpp$"
    "/(describe/concat_input|netcdf/netcdf_dimension_names)\\.cpp$")
list(JOIN TAILRACE_WHEEL_OMITS "|" TAILRACE_WHEEL_OMITS)

if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()
