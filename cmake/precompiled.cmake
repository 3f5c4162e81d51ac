# Precompiled headers. On two cores the program took 9.5 minutes to build without them; reading the standard library and
# fmt was half of it. A header is compiled once per level of optimisation, which must be the same in all who share it.

# lockstep_precompile(TARGET HEADER LEVEL): the target is compiled with -O<LEVEL> in a release build, and takes
# cmake/precompiled/<HEADER>.h as read.
function(lockstep_precompile target header level)
  set(owner lockstep_pch_${header}_O${level})
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/precompiled/${owner}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${owner} OBJECT ${source})
    target_include_directories(${owner} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/cmake)
    target_link_libraries(${owner} PRIVATE fmt::fmt spdlog::spdlog)
    if(header STREQUAL test)
      target_link_libraries(${owner} PRIVATE GTest::gtest)
    endif()
    target_compile_options(${owner} PRIVATE $<$<CONFIG:Release>:-O${level}>)
    target_precompile_headers(${owner} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled/${header}.h)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}>)
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
