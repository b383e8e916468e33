# candor_module(NAME SOURCES … [DEPENDS …] [PRIVATE …]): one static library for one folder of src/. DEPENDS are the
# modules above it and the packages its headers need; PRIVATE are packages only its sources need.
function(candor_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  set(target candor_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(candor::${name} ALIAS ${target})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                     $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:candor_compiler> ${ARG_PRIVATE})
  # Parsing these headers is a third of the time that a file takes to compile.
  list(LENGTH ARG_SOURCES count)
  if(count GREATER 5)
    target_precompile_headers(${target} PRIVATE <nlohmann/json.hpp> <fmt/format.h> <fmt/ranges.h>)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY CANDOR_MODULES ${target})
endfunction()

# candor_compile_quickly(TARGET): for code that is compiled more often than it is waited for.
function(candor_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# candor_test(NAME SOURCES … DEPENDS … [LABELS …]): one GoogleTest program; each TEST is one CTest test.
function(candor_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} candor_compiler GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  if(NOT TARGET candor_test_headers)
    file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "int main() {}\n")
    add_executable(candor_test_headers ${PROJECT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(candor_test_headers PRIVATE candor::base candor_compiler GTest::gmock)
    candor_compile_quickly(candor_test_headers)
    target_precompile_headers(candor_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>
                              <fmt/format.h>)
  endif()
  candor_compile_quickly(${name})
  target_precompile_headers(${name} REUSE_FROM candor_test_headers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12's value-range warnings misfire in inlined std::string and std::vector code (GCC bug 105329).
    target_compile_options(${name} PRIVATE -Wno-nonnull -Wno-stringop-overflow -Wno-restrict)
  endif()
  # Reference data lies beside the checkout where it is present; tests that need it skip where it is not.
  target_compile_definitions(${name} PRIVATE CANDOR_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             CANDOR_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared")
  # Tests with this label run under ThreadSanitizer too, and are all that is built there.
  if("threads" IN_LIST ARG_LABELS)
    if(NOT TARGET threaded_tests)
      add_custom_target(threaded_tests)
    endif()
    add_dependencies(threaded_tests ${name})
  endif()
  set(properties TIMEOUT 300)
  if(ARG_LABELS)
    list(PREPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()

# candor_fuzz(NAME SOURCES … DEPENDS …): one libFuzzer target; scripts/checks/fuzz runs all there are. The target
# fuzz_targets builds them with no more of the modules than they need.
function(candor_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} candor_compiler)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzz_targets)
    add_custom_target(fuzz_targets)
  endif()
  add_dependencies(fuzz_targets ${name})
endfunction()
