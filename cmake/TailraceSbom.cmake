# What the installed programs and libraries are made of, as this build has found it: tailrace.spdx.json
# (SPDX 2.3). Its time of creation is SOURCE_DATE_EPOCH's, else the commit's, so that two builds of
# one commit say the same; without both, now.

set(sbom_epoch "$ENV{SOURCE_DATE_EPOCH}")
if(NOT sbom_epoch AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  find_package(Git QUIET)
  if(Git_FOUND)
    execute_process(COMMAND "${GIT_EXECUTABLE}" log -1 --format=%ct
                    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                    OUTPUT_VARIABLE sbom_epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
set(sbom_epoch_before "$ENV{SOURCE_DATE_EPOCH}")
if(sbom_epoch)
  set(ENV{SOURCE_DATE_EPOCH} "${sbom_epoch}")
endif()
string(TIMESTAMP sbom_created "%Y-%m-%dT%H:%M:%SZ" UTC)
set(ENV{SOURCE_DATE_EPOCH} "${sbom_epoch_before}")
set(sbom_packages "")
set(sbom_relations "")

function(tailrace_sbom_package id name version licence)
  if(NOT version)
    set(version "NOASSERTION")
  endif()
  string(APPEND sbom_packages ",
    {\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,
     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\",
     \"copyrightText\": \"NOASSERTION\"}")
  string(APPEND sbom_relations ",
    {\"spdxElementId\": \"SPDXRef-tailrace\", \"relationshipType\": \"DEPENDS_ON\",
     \"relatedSpdxElement\": \"SPDXRef-${id}\"}")
  set(sbom_packages "${sbom_packages}" PARENT_SCOPE)
  set(sbom_relations "${sbom_relations}" PARENT_SCOPE)
endfunction()

tailrace_sbom_package(hdf5 "HDF5" "${TAILRACE_HDF5_VERSION}" "NOASSERTION")
if(TAILRACE_MPI)
  tailrace_sbom_package(mpi "MPI" "${MPI_C_VERSION} (standard)" "NOASSERTION")
endif()
tailrace_sbom_package(zlib "zlib" "${ZLIB_VERSION_STRING}" "Zlib")
if(TAILRACE_DEFLATE_FOUND)
  tailrace_sbom_package(libdeflate "libdeflate" "${TAILRACE_DEFLATE_VERSION}" "MIT")
endif()
if(TAILRACE_ZSTD_FOUND)
  tailrace_sbom_package(zstd "Zstandard" "${TAILRACE_ZSTD_VERSION}"
                        "BSD-3-Clause OR GPL-2.0-only")
endif()
tailrace_sbom_package(fmt "fmt" "${fmt_VERSION}" "MIT")
tailrace_sbom_package(nlohmann-json "JSON for Modern C++" "${nlohmann_json_VERSION}" "MIT")
if(TARGET tailrace_cli)
  tailrace_sbom_package(cli11 "CLI11" "${CLI11_VERSION}" "BSD-3-Clause")
endif()
if(TAILRACE_CAIRO)
  tailrace_sbom_package(cairo "cairo" "${TAILRACE_CAIRO_PC_cairo_VERSION}"
                        "LGPL-2.1-only OR MPL-1.1")
endif()

file(WRITE "${PROJECT_BINARY_DIR}/tailrace.spdx.json" "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"tailrace-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/tailrace-${PROJECT_VERSION}-${sbom_created}\",
  \"creationInfo\": {\"created\": \"${sbom_created}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\"]},
  \"packages\": [
    {\"SPDXID\": \"SPDXRef-tailrace\", \"name\": \"tailrace\", \"versionInfo\": \"${PROJECT_VERSION}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,
     \"licenseConcluded\": \"BSD-3-Clause\", \"licenseDeclared\": \"BSD-3-Clause\",
     \"copyrightText\": \"2026 The Tailrace developers\",
     \"comment\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}\"}${sbom_packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\",
     \"relatedSpdxElement\": \"SPDXRef-tailrace\"}${sbom_relations}
  ]
}
")
install(FILES "${PROJECT_BINARY_DIR}/tailrace.spdx.json" DESTINATION ${CMAKE_INSTALL_DOCDIR})
