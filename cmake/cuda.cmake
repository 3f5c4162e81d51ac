# The CUDA backend, and the programs that check and measure its kernels. Only the CUDA runtime is linked, statically: a
# program with this library in it starts on a machine without a driver, and loads cuBLASLt and cuDNN when a plan
# uses them.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a-real)
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(nvcc_options --extended-lambda -Xcompiler=-Wall,-Wextra,-Werror)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(CUDAToolkit REQUIRED)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/*.cc
     ${CMAKE_SOURCE_DIR}/src/backend/cuda/*.cu)

# cuDNN's header-only C++ front end (https://github.com/NVIDIA/cudnn-frontend). Without it attention and convolutions run by our kernels.
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h PATHS ${CMAKE_SOURCE_DIR}/build/cudnn-frontend/include)
if(NOT CUDNN_FRONTEND_INCLUDE)
  message(STATUS "cudnn_frontend.h not found: attention and convolutions without cuDNN (set CUDNN_FRONTEND_INCLUDE)")
  list(FILTER cuda_sources EXCLUDE REGEX "/backend/cuda/cudnn/")
endif()

# The kernels and what calls the libraries; needs nothing of the house but src/base, so that the programs below run on a
# machine that has only a driver and the toolkit's libraries.
set(kernel_sources ${cuda_sources})
list(FILTER kernel_sources INCLUDE REGEX "/cuda/(kernels|library|products|cudnn)/")
list(REMOVE_ITEM cuda_sources ${kernel_sources})
add_library(lockstep_cuda_kernels STATIC ${kernel_sources})
target_include_directories(lockstep_cuda_kernels PUBLIC ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(lockstep_cuda_kernels PRIVATE FMT_HEADER_ONLY)
target_link_libraries(lockstep_cuda_kernels PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})
if(CUDNN_FRONTEND_INCLUDE)
  target_compile_definitions(lockstep_cuda_kernels PUBLIC LOCKSTEP_CUDNN_FRONTEND
                                                          NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING)
  target_include_directories(lockstep_cuda_kernels SYSTEM PUBLIC ${CUDNN_FRONTEND_INCLUDE})
endif()
# Contraction is decided by the code here too.
target_compile_options(lockstep_cuda_kernels PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${nvcc_options};--fmad=false>")

# The backend on top of them: devices, streams, and kernels made from nodes of a graph. It and lockstep_backend need each
# other: one makes the other's devices, which take the host's memory from it.
set(functions ${CMAKE_SOURCE_DIR}/src/backend/cuda/kernels/pointwise_functions.cuh)
set(functions_text ${CMAKE_BINARY_DIR}/generated/pointwise_functions.cc)
add_custom_command(
  OUTPUT ${functions_text}
  COMMAND ${CMAKE_COMMAND} -DTEXT=${functions} -DOUTPUT=${functions_text} -DNAME=kPointwiseFunctions
          -DNAMESPACE=lockstep::cuda -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${functions} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
add_library(lockstep_cuda STATIC ${cuda_sources} ${functions_text})
target_link_libraries(lockstep_cuda PUBLIC lockstep_backend lockstep_cuda_kernels)
target_link_libraries(lockstep_backend PUBLIC lockstep_cuda)

# kernel_check compares every kernel with a reference, gpu_limits measures the machine; run_gpu.sh beside them runs both.
set(probes ${CMAKE_SOURCE_DIR}/bench/probes/cuda)
file(GLOB check_sources CONFIGURE_DEPENDS ${probes}/check_*.cc)
add_executable(kernel_check ${probes}/kernel_check.cc ${check_sources} ${probes}/gpu_bench.cu)
add_executable(gpu_limits ${probes}/gpu_limits.cu ${probes}/gpu_bench.cu)
foreach(program kernel_check gpu_limits)
  target_sources(${program} PRIVATE src/base/dtype.cc src/base/philox.cc src/base/portable_math.cc)
  target_include_directories(${program} PRIVATE ${probes})
  target_compile_definitions(${program} PRIVATE FMT_HEADER_ONLY)
  target_link_libraries(${program} PRIVATE lockstep_cuda_kernels)
  target_compile_options(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${nvcc_options}>")
  target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
endforeach()
