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

# lockstep_compile_together(LIBRARY INCLUDE): the files of the library that include a costly header are compiled in groups.
# CLI11 is all templates and inline functions: each file that used it took 5 to 8 s, and there were 26 of them.
function(lockstep_compile_together library include)
  get_target_property(sources lockstep_${library} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} includes REGEX "#include.*${include}")
    if(NOT includes)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(lockstep_${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
endfunction()
