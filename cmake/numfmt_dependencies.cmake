# SPDX-License-Identifier: MIT
# numfmt_dependency(<name>): makes a third-party target available, from an installed package where there is one, else
# from a pinned release that is fetched. Nothing is looked for until a part of numfmt that needs it is switched on.

#                              target                          minimum  release   repository                                  Debian package
set(NUMFMT_DEP_nlohmann_json   nlohmann_json::nlohmann_json    3.10     v3.11.3   https://github.com/nlohmann/json.git        nlohmann-json3-dev)
set(NUMFMT_DEP_doctest         doctest::doctest                2.4      v2.4.12   https://github.com/doctest/doctest.git      doctest-dev)
set(NUMFMT_DEP_fmt             fmt::fmt                        8        10.2.1    https://github.com/fmtlib/fmt.git           libfmt-dev)
set(NUMFMT_DEP_CLI11           CLI11::CLI11                    2.1      v2.4.2    https://github.com/CLIUtils/CLI11.git       libcli11-dev)
set(NUMFMT_DEP_benchmark       benchmark::benchmark            1.6      v1.8.5    https://github.com/google/benchmark.git     libbenchmark-dev)

function(numfmt_dependency name)
    if(NOT DEFINED NUMFMT_DEP_${name})
        message(FATAL_ERROR "numfmt_dependency: '${name}' is not in the table of cmake/numfmt_dependencies.cmake")
    endif()
    list(GET NUMFMT_DEP_${name} 0 target)
    list(GET NUMFMT_DEP_${name} 1 minimum)
    list(GET NUMFMT_DEP_${name} 2 release)
    list(GET NUMFMT_DEP_${name} 3 repository)
    list(GET NUMFMT_DEP_${name} 4 debian_package)
    if(TARGET ${target})
        return()
    endif()

    # GLOBAL: a parent project that links numfmt::io from its own directory must see the imported target too.
    find_package(${name} ${minimum} QUIET GLOBAL)
    if(TARGET ${target})
        message(STATUS "numfmt: ${name} ${${name}_VERSION} from ${${name}_DIR}")
        return()
    endif()

    # FetchContent stops with git's own message when it cannot reach the repository, so ask first.
    include(FetchContent)
    string(TOUPPER ${name} upper_name)
    string(TOLOWER ${name} lower_name)
    set(advice "Install ${name} ${minimum} or later (Debian, Ubuntu: apt-get install ${debian_package}), point CMAKE_PREFIX_PATH at it, or set FETCHCONTENT_SOURCE_DIR_${upper_name} to a copy of its source.")
    get_property(base_dir CACHE FETCHCONTENT_BASE_DIR PROPERTY VALUE)
    if(NOT FETCHCONTENT_SOURCE_DIR_${upper_name} AND NOT EXISTS "${base_dir}/${lower_name}-src/CMakeLists.txt")
        if(FETCHCONTENT_FULLY_DISCONNECTED)
            message(FATAL_ERROR "numfmt: ${name} >= ${minimum} is not installed and FETCHCONTENT_FULLY_DISCONNECTED is on. ${advice}")
        endif()
        find_package(Git QUIET)
        if(NOT GIT_FOUND)
            message(FATAL_ERROR "numfmt: ${name} >= ${minimum} is not installed and there is no git to fetch it with. ${advice}")
        endif()
        execute_process(
            COMMAND ${CMAKE_COMMAND} -E env GIT_TERMINAL_PROMPT=0 "${GIT_EXECUTABLE}" ls-remote --exit-code ${repository} refs/tags/${release}
            RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error TIMEOUT 60)
        if(NOT result EQUAL 0)
            string(STRIP "${error}" error)
            message(FATAL_ERROR "numfmt: ${name} >= ${minimum} is not installed and release ${release} could not be fetched from ${repository} (${result}: ${error}). ${advice}")
        endif()
    endif()

    message(STATUS "numfmt: ${name} is not installed: using release ${release} of ${repository}")
    set(JSON_BuildTests OFF)
    set(DOCTEST_WITH_TESTS OFF)
    set(DOCTEST_WITH_MAIN_IN_STATIC_LIB OFF)
    set(DOCTEST_NO_INSTALL ON)
    set(FMT_INSTALL OFF)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    set(BENCHMARK_ENABLE_WERROR OFF)
    set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # these variables win over the options of the same name
    FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${release} GIT_SHALLOW TRUE SYSTEM)
    FetchContent_MakeAvailable(${name})
    if(NOT TARGET ${target})
        message(FATAL_ERROR "numfmt: release ${release} of ${name} does not define ${target}. ${advice}")
    endif()
endfunction()
