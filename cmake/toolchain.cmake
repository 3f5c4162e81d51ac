# Compiler settings common to every target: warnings are errors in our code, floating point keeps its written order.
# Precompiled headers need the sloppiness, or the compiler cache never hits; the base directory lets checkouts share it.
find_program(CCACHE ccache)
find_program(ENV_PROGRAM env)
if(CCACHE AND ENV_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ENV_PROGRAM} CCACHE_SLOPPINESS=pch_defines,time_macros
                                  CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# restrict, stringop-overflow: GCC 12 reports std::string concatenation falsely (GCC bug 105329).
# unknown-pragmas: clang, which builds the fuzzers, does not know GCC's hints about loops.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>
                    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas>)
# Contraction is decided by the code (explicit fma), never by the optimiser: the same expression must round the same
# way in a vector body and in a scalar tail, at -O0 and at -O3.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)

set(LOCKSTEP_SANITIZE "" CACHE STRING "Value for -fsanitize, empty for none")
if(LOCKSTEP_SANITIZE)
  # GCC warns falsely of uninitialised members inside the standard library when it instruments.
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                      -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
