# SPDX-License-Identifier: MIT
# Reads the version from the macros of core/config.hpp into NUMFMT_VERSION.
set(NUMFMT_CONFIG_HEADER "${CMAKE_CURRENT_LIST_DIR}/../include/numfmt/core/config.hpp")
file(STRINGS "${NUMFMT_CONFIG_HEADER}" numfmt_version_lines REGEX "^#define NUMFMT_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
set(NUMFMT_VERSION "")
foreach(part IN ITEMS MAJOR MINOR PATCH)
    if(NOT numfmt_version_lines MATCHES "NUMFMT_VERSION_${part} +([0-9]+)")
        message(FATAL_ERROR "numfmt: no '#define NUMFMT_VERSION_${part} <number>' in ${NUMFMT_CONFIG_HEADER}")
    endif()
    list(APPEND NUMFMT_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN NUMFMT_VERSION "." NUMFMT_VERSION)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${NUMFMT_CONFIG_HEADER}")
