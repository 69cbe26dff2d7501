# SPDX-License-Identifier: MIT
# numfmt_dev_flags: warnings and sanitizers of our own tests, examples and benchmarks. Never exported, never on the
# library targets.
option(NUMFMT_WERROR "Warnings are errors in the tests, examples and benchmarks of numfmt" ON)
set(NUMFMT_SANITIZE "" CACHE STRING "Sanitizers for the tests, examples and benchmarks, as for -fsanitize=")

set(NUMFMT_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(NUMFMT_WERROR)
    list(APPEND NUMFMT_WARNINGS -Werror)
endif()

add_library(numfmt_dev_flags INTERFACE)
target_compile_options(numfmt_dev_flags INTERFACE ${NUMFMT_WARNINGS})
if(NUMFMT_SANITIZE)
    target_compile_options(numfmt_dev_flags INTERFACE
        -fsanitize=${NUMFMT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(numfmt_dev_flags INTERFACE -fsanitize=${NUMFMT_SANITIZE})
endif()

# Variables of this directory and those below it; a parent project does not see them.
set(CMAKE_CXX_EXTENSIONS OFF)  # -std=c++20, as documented, not gnu++20
find_program(NUMFMT_CCACHE ccache)
mark_as_advanced(NUMFMT_CCACHE)
if(NUMFMT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${NUMFMT_CCACHE}")
endif()
