include(GoogleTest)
include(cmake/precompiled.cmake)
include(cmake/together.cmake)

# lockstep_library(NAME [HOT] [GRAPH] NEEDS dep...): the library of folder src/NAME, and its tests (every *_test.cc beside
# the code). HOT: it runs for every record or element, and is worth -O3. GRAPH: most of its files work on graphs.
function(lockstep_library name)
  cmake_parse_arguments(ARG "HOT;GRAPH" "" "NEEDS" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/backend/cuda/")  # built by cmake/cuda.cmake, where asked for
  if(LOCKSTEP_CUDA)
    list(FILTER sources EXCLUDE REGEX "/backend/no_cuda.cc$")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc|/main\\.cc|/simd/.*_loops\\.cc)$")

  # Loops for an instruction set that is asked for at run time have options of their own.
  set(alone ${sources})
  list(FILTER alone INCLUDE REGEX "_loops\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_loops\\.cc$")
  lockstep_together(sources lockstep_${name} ${sources})
  add_library(lockstep_${name} STATIC ${sources} ${alone})
  set(level 1)
  if(ARG_HOT)
    set(level 3)
  endif()
  set(header standard)
  if(ARG_GRAPH)
    set(header graph)
  endif()
  lockstep_precompile(lockstep_${name} ${header} ${level})
  target_include_directories(lockstep_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(dep IN LISTS ARG_NEEDS)
    if(TARGET lockstep_${dep})
      target_link_libraries(lockstep_${name} PUBLIC lockstep_${dep})
    else()
      target_link_libraries(lockstep_${name} PUBLIC ${dep})
    endif()
  endforeach()

  if(tests)
    lockstep_together(tests ${name}_test ${tests})
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE lockstep_${name} GTest::gtest_main)
    lockstep_precompile(${name}_test test 1)
    if(TARGET lockstep_testing)
      target_link_libraries(${name}_test PRIVATE lockstep_testing)
    endif()
    lockstep_tests(${name}_test ${name})
  endif()
endfunction()

# lockstep_tests(TARGET PREFIX): every case of a GoogleTest program as a test of its own, named PREFIX/Suite.Case. A
# suite whose name ends in Long gets the label `long` and stays out of a plain `./dev test`.
function(lockstep_tests target prefix)
  set(common TEST_PREFIX ${prefix}/ DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  gtest_discover_tests(${target} ${common} TEST_FILTER "-*Long.*")
  gtest_discover_tests(${target} ${common} TEST_FILTER "*Long.*" TEST_LIST ${target}_LONG PROPERTIES LABELS long)
endfunction()

# lockstep_simd(LIBRARY FOLDER): every *_loops.cc of the folder is compiled once per instruction set, in a namespace
# named after it. These files hold plain loops over pointers and include no container or template of the standard
# library, so that no code compiled for a wider instruction set can be merged into the rest of the program.
function(lockstep_simd library folder)
  file(GLOB loops CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*_loops.cc)
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
  foreach(isa avx2 avx512)
    add_library(lockstep_${library}_${isa} OBJECT ${loops})
    target_include_directories(lockstep_${library}_${isa} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_compile_options(lockstep_${library}_${isa} PRIVATE ${flags_${isa}})
    target_compile_definitions(lockstep_${library}_${isa} PRIVATE LOCKSTEP_ISA=${isa})
    target_sources(lockstep_${library} PRIVATE $<TARGET_OBJECTS:lockstep_${library}_${isa}>)
  endforeach()
endfunction()

# lockstep_embed_templates(LIBRARY FOLDER): the folder's YAML files become job_templates() of the library.
function(lockstep_embed_templates library folder)
  file(GLOB texts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.yaml)
  set(output ${CMAKE_BINARY_DIR}/generated/job_templates.cc)
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed_texts.cmake)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DTEXTS=${texts}" -DOUTPUT=${output} -P ${script}
    DEPENDS ${texts} ${script} VERBATIM)
  target_sources(lockstep_${library} PRIVATE ${output})
endfunction()
