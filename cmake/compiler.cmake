# Flags for every target. Numerics first: the compiler may neither contract a*b+c nor reassociate, because kernels
# promise the same bits on every instruction set (docs/numerics.md).
option(CANDOR_WARNINGS_AS_ERRORS "Warnings are errors" ON)
add_library(candor_compiler INTERFACE)
target_compile_options(
  candor_compiler
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wno-sign-conversion
            -Wnon-virtual-dtor
            -ffp-contract=off
            -fno-fast-math)
if(CANDOR_WARNINGS_AS_ERRORS)
  target_compile_options(candor_compiler INTERFACE -Werror)
endif()
if(CANDOR_SANITIZE)
  target_compile_options(candor_compiler INTERFACE -fsanitize=${CANDOR_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(candor_compiler INTERFACE -fsanitize=${CANDOR_SANITIZE})
  # GCC's value-range warnings misfire in instrumented code.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(candor_compiler INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow
                                                     -Wno-array-bounds)
  endif()
endif()
if(CANDOR_FUZZ)
  target_compile_options(candor_compiler INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(CANDOR_CCACHE ccache)
if(CANDOR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache wants before it caches files that use precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CANDOR_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(candor_compiler INTERFACE -fpch-preprocess)
  else()
    target_compile_options(candor_compiler INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()
