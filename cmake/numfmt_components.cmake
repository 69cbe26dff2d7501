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

# numfmt::cuda: the CUDA headers and the runtime library. A user compiles with nvcc (or CMake's CUDA language) in C++20.
if(NUMFMT_WITH_CUDA)
    find_package(CUDAToolkit 12.8 QUIET GLOBAL)
    if(TARGET CUDA::cudart)
        file(GLOB_RECURSE numfmt_cuda_headers CONFIGURE_DEPENDS
            "${NUMFMT_INCLUDE_DIR}/numfmt/cuda/*.hpp" "${NUMFMT_INCLUDE_DIR}/numfmt/cuda/*.cuh")
        numfmt_add_header_component(numfmt_cuda cuda ${numfmt_cuda_headers})
        target_link_libraries(numfmt_cuda INTERFACE numfmt::numfmt $<BUILD_INTERFACE:CUDA::cudart>)
        list(APPEND NUMFMT_COMPONENTS cuda)
    elseif(NUMFMT_WITH_CUDA STREQUAL "AUTO")
        message(STATUS "numfmt: no CUDA toolkit 12.8 or later was found: the component cuda is left out")
    else()
        message(FATAL_ERROR "numfmt: NUMFMT_WITH_CUDA is on, but no CUDA toolkit 12.8 or later was found (set CUDAToolkit_ROOT)")
    endif()
endif()

# numfmt::simd: the static library with the one implementation unit of <numfmt/simd.hpp>. Highway is compiled into it
# and not part of its interface; simd/*-inl.h, which include Highway, are for code that has it anyway.
if(NUMFMT_WITH_SIMD)
    numfmt_dependency(hwy)
    numfmt_glob_headers(numfmt_simd_headers simd.hpp simd/*.hpp simd/*.h)
    file(CONFIGURE OUTPUT numfmt_simd.cpp @ONLY
        CONTENT "// Generated: the implementation unit.\n#define NUMFMT_SIMD_IMPLEMENTATION\n#include <numfmt/simd.hpp>\n")
    add_library(numfmt_simd STATIC "${CMAKE_CURRENT_BINARY_DIR}/numfmt_simd.cpp")
    add_library(numfmt::simd ALIAS numfmt_simd)
    set_target_properties(numfmt_simd PROPERTIES EXPORT_NAME simd POSITION_INDEPENDENT_CODE ON)
    target_compile_features(numfmt_simd PUBLIC cxx_std_20)
    target_sources(numfmt_simd PUBLIC FILE_SET HEADERS BASE_DIRS "${NUMFMT_INCLUDE_DIR}" FILES ${numfmt_simd_headers})
    # Linked by name outside, so that an installed numfmt::simd asks for Highway's package only.
    target_link_libraries(numfmt_simd PUBLIC numfmt::numfmt PRIVATE hwy::hwy)
    # The oldest CPU the program runs on; newer instruction sets are chosen at run time.
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
        target_compile_options(numfmt_simd PRIVATE -march=x86-64-v2)
    endif()
    find_program(NUMFMT_SIMD_CCACHE ccache)
    mark_as_advanced(NUMFMT_SIMD_CCACHE)
    if(NUMFMT_SIMD_CCACHE AND PROJECT_IS_TOP_LEVEL)
        set_target_properties(numfmt_simd PROPERTIES CXX_COMPILER_LAUNCHER "${NUMFMT_SIMD_CCACHE}")
    endif()
    list(APPEND NUMFMT_COMPONENTS simd)
endif()
