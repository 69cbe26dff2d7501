# SPDX-License-Identifier: MIT
# The library targets. numfmt_add_header_component() is what a header-only component needs; simd (a static library) and
# cuda come in beside io, each behind its own NUMFMT_WITH_<COMPONENT> option.
set(NUMFMT_INCLUDE_DIR "${PROJECT_SOURCE_DIR}/include")
set(NUMFMT_COMPONENTS "")

# numfmt_glob_headers(<out> <relative glob>...): absolute paths under include/numfmt.
function(numfmt_glob_headers out)
    list(TRANSFORM ARGN PREPEND "${NUMFMT_INCLUDE_DIR}/numfmt/")
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${ARGN})
    set(${out} ${headers} PARENT_SCOPE)
endfunction()

# numfmt_add_header_component(<target> <component name> <headers>...): the target, its alias numfmt::<component name>,
# and its files.
function(numfmt_add_header_component target name)
    add_library(${target} INTERFACE)
    add_library(numfmt::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS "${NUMFMT_INCLUDE_DIR}" FILES ${ARGN})
endfunction()

# numfmt::numfmt: everything that needs the standard library only. Rooms that belong to a component are left out.
numfmt_glob_headers(numfmt_headers *.hpp)
list(FILTER numfmt_headers EXCLUDE REGEX "/include/numfmt/(io|simd|cuda)(/|\\.hpp$)")
numfmt_add_header_component(numfmt numfmt ${numfmt_headers})

# numfmt::io: other people's files.
if(NUMFMT_WITH_IO)
    numfmt_dependency(nlohmann_json)
    numfmt_glob_headers(numfmt_io_headers io/*.hpp)
    numfmt_add_header_component(numfmt_io io ${numfmt_io_headers})
    # An installed numfmt::io gets nlohmann-json from numfmtConfig.cmake: this build may have fetched its own copy, which
    # is not installed.
    target_link_libraries(numfmt_io INTERFACE numfmt::numfmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
    list(APPEND NUMFMT_COMPONENTS io)
endif()
