// What one GPU and the libraries on it can do: start-up, copies, launches, products by shape and algorithm,
// attention, memory shared between processes. Run as `gpu_limits [section...]`; without arguments all
// sections run. A section that fails says so, and the next one runs.
#include <dlfcn.h>
#include <nvrtc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/kernels/row_norm.h"
#include "backend/cuda/kernels/tree_sum.h"
#include "backend/cuda/library/cublaslt.h"
#include "backend/cuda/products/matmul_plan.h"
#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/sdpa_plan.h"
#endif
#include "gpu_bench.h"

using namespace gpu_bench;
using namespace lockstep::cuda;
using lockstep::size_of;

namespace {

constexpr int64_t kWorkspace = 64 << 20;
constexpr int64_t kMiB = 1 << 20;

struct Timer {
  double start = seconds_now();
  double ms() const { return (seconds_now() - start) * 1e3; }
};

cublasLtHandle_t lt_handle() {
  static cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    require(cublaslt().create(&made), "a handle");
    return made;
  }();
  return handle;
}

// ---- start-up
// -------------------------------------------------------------------------------------------------

const char* kFusedSource = R"(
extern "C" __global__ void fused(const float4* a, const float4* b, const float* row, float4* out, long long count,
                                 int width) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long long)blockDim.x) {
    float4 x = a[i], y = b[i], z;
    const float* r = row + (i * 4) % width;
    float v[4] = {x.x + y.x + r[0], x.y + y.y + r[1], x.z + y.z + r[2], x.w + y.w + r[3]};
    for (int k = 0; k < 4; ++k) v[k] = v[k] / (1.0f + expf(v[k] * fmaf(v[k] * v[k], -0.0713548163f, -1.595769122f)));
    z = make_float4(v[0] * x.x, v[1] * x.y, v[2] * x.z, v[3] * x.w);
    out[i] = z;
  }
})";

void nvrtc_times(Report& report) {
  Timer loading;
  void* library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return report.line("nvrtc", {{"missing", dlerror()}});
  report.line("nvrtc dlopen", {{"ms", loading.ms()}});
  const auto find = [&](const char* name) { return dlsym(library, name); };
  const auto create = reinterpret_cast<decltype(&nvrtcCreateProgram)>(find("nvrtcCreateProgram"));
  const auto compile = reinterpret_cast<decltype(&nvrtcCompileProgram)>(find("nvrtcCompileProgram"));
  const auto size = reinterpret_cast<decltype(&nvrtcGetCUBINSize)>(find("nvrtcGetCUBINSize"));
  const auto get = reinterpret_cast<decltype(&nvrtcGetCUBIN)>(find("nvrtcGetCUBIN"));
  for (int i = 0; i < 4; ++i) {
    Timer timer;
    nvrtcProgram program = nullptr;
    // Each time another text, so that no cache answers.
    const std::string source =
        std::string(kFusedSource) + "\n// " + std::to_string(i) + std::to_string(getpid());
    create(&program, source.c_str(), "fused.cu", 0, nullptr, nullptr);
    const char* options[] = {"-arch=sm_90", "--fmad=false", "--no-cache"};
    const auto status = compile(program, 3, options);
    size_t bytes = 0;
    size(program, &bytes);
    std::string cubin(bytes, '\0');
    get(program, cubin.data());
    const double compile_ms = timer.ms();
    Timer load;
    cudaLibrary_t loaded{};
    cudaKernel_t kernel{};
    const cudaError_t ok =
        cudaLibraryLoadData(&loaded, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    const cudaError_t found = ok == cudaSuccess ? cudaLibraryGetKernel(&kernel, loaded, "fused") : ok;
    report.line("nvrtc fused kernel, compile " + std::to_string(i),
                {{"status", static_cast<double>(status)},
                 {"compile_ms", compile_ms},
                 {"cubin_bytes", static_cast<double>(bytes)},
                 {"load_ms", load.ms()},
                 {"load", cudaGetErrorString(found)}});
  }
}

void startup(Report& report) {
  Timer init;
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount (cuInit)");
  report.line("cuInit and device count", {{"ms", init.ms()}, {"devices", static_cast<double>(devices)}});
  Timer context;
  require(cudaFree(nullptr), "context");
  report.line("context", {{"ms", context.ms()}});
  cudaDeviceProp p{};
  Timer properties;
  require(cudaGetDeviceProperties(&p, 0), "properties");
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  report.line("device", {{"name", p.name},
                         {"multiprocessors", static_cast<double>(p.multiProcessorCount)},
                         {"bytes", static_cast<double>(p.totalGlobalMem)},
                         {"l2_bytes", static_cast<double>(p.l2CacheSize)},
                         {"driver", static_cast<double>(driver)},
                         {"runtime", static_cast<double>(runtime)},
                         {"properties_ms", properties.ms()}});
  {
    DeviceBuffer buffer(1 << 20);
    for (const char* which : {"first", "second"}) {
      Timer launch;
      tree_sum(nullptr, DType::kF32, {{buffer.data()}, 1}, false, buffer.data(), 1024);
      require(cudaDeviceSynchronize(), "launch");
      report.line(std::string(which) + " launch of one of our kernels", {{"ms", launch.ms()}});
    }
  }
  for (const int64_t mib : {1, 64, 1024, 16384, 65536}) {
    Timer malloc_timer;
    void* data = nullptr;
    require(cudaMalloc(&data, static_cast<size_t>(mib * kMiB)), "cudaMalloc");
    const double malloc_ms = malloc_timer.ms();
    Timer set;
    require(cudaMemset(data, 0, static_cast<size_t>(mib * kMiB)), "memset");
    require(cudaDeviceSynchronize(), "memset");
    const double set_ms = set.ms();
    Timer free_timer;
    require(cudaFree(data), "cudaFree");
    report.line("cudaMalloc of " + std::to_string(mib) + " MiB",
                {{"malloc_ms", malloc_ms}, {"memset_ms", set_ms}, {"free_ms", free_timer.ms()}});
  }
  for (const int64_t mib : {1, 64, 1024}) {
    Timer timer;
    void* data = nullptr;
    require(cudaHostAlloc(&data, static_cast<size_t>(mib * kMiB), cudaHostAllocDefault), "cudaHostAlloc");
    const double ms = timer.ms();
    Timer release;
    require(cudaFreeHost(data), "cudaFreeHost");
    report.line("pinned allocation of " + std::to_string(mib) + " MiB",
                {{"ms", ms}, {"free_ms", release.ms()}});
  }
  Timer lt;
  const CublasLt& library = cublaslt();
  const double load_ms = lt.ms();
  Timer create;
  lt_handle();
  report.line("cublasLt", {{"dlopen_ms", load_ms},
                           {"create_ms", create.ms()},
                           {"version", static_cast<double>(library.version())},
                           {"path", library.path}});
#ifdef LOCKSTEP_CUDNN_FRONTEND
  Timer dnn;
  const Cudnn& dnn_library = cudnn();
  const double dnn_ms = dnn.ms();
  Timer handle;
  make_cudnn_handle();
  report.line("cudnn", {{"dlopen_ms", dnn_ms},
                        {"create_ms", handle.ms()},
                        {"version", static_cast<double>(dnn_library.version)},
                        {"path", dnn_library.path}});
#endif
  nvrtc_times(report);
  Timer nccl;
  void* nccl_library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  report.line("nccl dlopen", {{"ms", nccl.ms()}, {"found", nccl_library != nullptr ? "yes" : dlerror()}});
  if (nccl_library != nullptr) {
    const auto version = reinterpret_cast<int (*)(int*)>(dlsym(nccl_library, "ncclGetVersion"));
    int number = 0;
    if (version != nullptr) version(&number);
    report.line("nccl version", {{"version", static_cast<double>(number)}});
  }
}

// ---- copies and launches
// --------------------------------------------------------------------------------------

void copies(Report& report) {
  cudaStream_t stream, other;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  require(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
  const int64_t bytes = int64_t{2} << 30;
  DeviceBuffer a = random_buffer(DType::kF32, bytes / 4, 1), b(bytes);
  require(cudaDeviceSynchronize(), "fill");
  const auto rate = [&](double ms, double moved) { return moved / ms / 1e6; };
  double ms = time_ms(stream, [&] {
    require(cudaMemcpyAsync(b.data(), a.data(), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
            "copy");
  });
  report.line("device to device, read + written", {{"ms", ms}, {"GB/s", rate(ms, 2.0 * bytes)}});
  TreeSources sources{{a.data(), b.data()}, 2};
  ms = time_ms(stream, [&] { tree_sum(stream, DType::kF32, sources, false, b.data(), bytes / 4); });
  report.line("a + b in place, 3 passes", {{"ms", ms}, {"GB/s", rate(ms, 3.0 * bytes)}});
  void *pinned, *pinned2;
  const int64_t host = 512 * kMiB;
  require(cudaHostAlloc(&pinned, static_cast<size_t>(host), cudaHostAllocDefault), "pinned");
  require(cudaHostAlloc(&pinned2, static_cast<size_t>(host), cudaHostAllocDefault), "pinned");
  std::memset(pinned, 1, static_cast<size_t>(host));
  for (const int64_t size : {int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 24, host}) {
    const std::string text = std::to_string(size >> 10) + " KiB";
    ms = time_ms(stream, [&] {
      require(cudaMemcpyAsync(a.data(), pinned, static_cast<size_t>(size), cudaMemcpyHostToDevice, stream),
              "copy");
    });
    report.line("pinned to device, " + text, {{"ms", ms}, {"GB/s", rate(ms, size)}});
    ms = time_ms(stream, [&] {
      require(cudaMemcpyAsync(pinned, a.data(), static_cast<size_t>(size), cudaMemcpyDeviceToHost, stream),
              "copy");
    });
    report.line("device to pinned, " + text, {{"ms", ms}, {"GB/s", rate(ms, size)}});
  }
  Timer both;
  for (int i = 0; i < 4; ++i) {
    require(cudaMemcpyAsync(a.data(), pinned, static_cast<size_t>(host), cudaMemcpyHostToDevice, stream),
            "copy");
    require(cudaMemcpyAsync(pinned2, b.data(), static_cast<size_t>(host), cudaMemcpyDeviceToHost, other),
            "copy");
  }
  require(cudaDeviceSynchronize(), "copies");
  report.line("both directions at once, sum", {{"GB/s", rate(both.ms(), 8.0 * host)}});
  std::vector<char> pageable(static_cast<size_t>(host), 1);
  Timer page;
  require(cudaMemcpy(a.data(), pageable.data(), pageable.size(), cudaMemcpyHostToDevice), "copy");
  report.line("pageable to device", {{"GB/s", rate(page.ms(), host)}});
  require(cudaFreeHost(pinned), "free");
  require(cudaFreeHost(pinned2), "free");
}

__global__ void empty_kernel(int* p, int value) {
  if (value == 12345) *p = value;
}

void launches(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  DeviceBuffer buffer(256);
  const auto launch = [&](int i) { empty_kernel<<<1, 32, 0, stream>>>(buffer.as<int>(), i); };
  launch(0);
  require(cudaStreamSynchronize(stream), "launch");
  constexpr int kLaunches = 20000;
  Timer issue;
  for (int i = 0; i < kLaunches; ++i) launch(i % 100);
  const double issue_ms = issue.ms();
  require(cudaStreamSynchronize(stream), "launch");
  report.line("direct launches", {{"us_issue_each", issue_ms * 1e3 / kLaunches},
                                  {"us_done_each", issue.ms() * 1e3 / kLaunches}});
  Timer synced;
  for (int i = 0; i < 1000; ++i) {
    launch(i % 100);
    require(cudaStreamSynchronize(stream), "launch");
  }
  report.line("launch and wait", {{"us_each", synced.ms()}});
  cudaEvent_t event;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  Timer events;
  for (int i = 0; i < 10000; ++i) require(cudaEventRecord(event, stream), "event");
  const double record_ms = events.ms();
  Timer waits;
  for (int i = 0; i < 10000; ++i) require(cudaStreamWaitEvent(stream, event, 0), "wait");
  report.line("events", {{"us_record", record_ms / 10}, {"us_wait", waits.ms() / 10}});
  require(cudaStreamSynchronize(stream), "events");
  for (const int nodes : {100, 400, 2000}) {
    Timer capture;
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < nodes; ++i) launch(i % 100);
    cudaGraph_t graph;
    require(cudaStreamEndCapture(stream, &graph), "capture");
    const double capture_ms = capture.ms();
    Timer instantiate;
    cudaGraphExec_t exec;
    require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    const double instantiate_ms = instantiate.ms();
    Timer first;
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaStreamSynchronize(stream), "replay");
    const double first_ms = first.ms();
    Timer replay;
    for (int i = 0; i < 50; ++i) require(cudaGraphLaunch(exec, stream), "replay");
    const double replay_issue = replay.ms() / 50;
    require(cudaStreamSynchronize(stream), "replay");
    report.line("graph of " + std::to_string(nodes) + " kernels",
                {{"capture_ms", capture_ms},
                 {"instantiate_ms", instantiate_ms},
                 {"first_ms", first_ms},
                 {"issue_ms", replay_issue},
                 {"us_each", replay.ms() * 1e3 / 50 / nodes}});
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
}

// ---- products
// -------------------------------------------------------------------------------------------------

struct Operands {
  DeviceBuffer a, b, d, bias, aux;
  MatmulArgs args;
  Operands(const MatmulShape& s, bool zeros = false) {
    const int64_t batch = s.batch;
    a = random_buffer(s.dtype, batch * s.m * s.k, 1, zeros ? 0.0f : 1.0f);
    b = random_buffer(s.dtype, batch * s.k * s.n, 2, zeros ? 0.0f : 1.0f);
    d = random_buffer(s.result, batch * s.m * s.n, 3, zeros ? 0.0f : 1.0f);
    bias = random_buffer(DType::kF32, s.m > s.n ? s.m : s.n, 4);
    args = {a.data(), b.data(), d.data(), nullptr, nullptr};
    if (s.epilogue == Epilogue::kNone) return;
    args.bias = bias.data();
    if (s.epilogue != Epilogue::kBias && s.epilogue != Epilogue::kBiasGradB) {
      aux = random_buffer(DType::kBF16, s.m * s.n, 5);
      args.aux = aux.data();
    }
  }
};

// A is zero but for ones in the last 64 of the inner axis, B is one: every element of the result must be 64.
bool keeps_inner_tail(const MatmulPlan& plan, const AlgorithmChoice& choice, void* workspace,
                      cudaStream_t stream) {
  const MatmulShape& s = plan.shape();
  if (s.epilogue != Epilogue::kNone || s.dtype != DType::kBF16) return true;
  const int64_t tail = s.k < 64 ? s.k : 64;
  const uint16_t one = 0x3f80;
  std::vector<uint16_t> a(static_cast<size_t>(s.m * s.k), 0), b(static_cast<size_t>(s.k * s.n), one);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t k = s.k - tail; k < s.k; ++k)
      a[static_cast<size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)] = one;
  DeviceBuffer da(s.m * s.k * 2), db(s.k * s.n * 2), dd(s.m * s.n * size_of(s.result));
  require(cudaMemcpy(da.data(), a.data(), a.size() * 2, cudaMemcpyHostToDevice), "copy");
  require(cudaMemcpy(db.data(), b.data(), b.size() * 2, cudaMemcpyHostToDevice), "copy");
  require(cudaMemset(dd.data(), 0, static_cast<size_t>(dd.bytes())), "memset");
  plan.run(stream, {da.data(), db.data(), dd.data()}, choice, workspace);
  require(cudaStreamSynchronize(stream), "product");
  std::vector<uint8_t> d(static_cast<size_t>(dd.bytes()));
  require(cudaMemcpy(d.data(), dd.data(), d.size(), cudaMemcpyDeviceToHost), "copy");
  for (int64_t i = 0; i < s.m * s.n; ++i)
    if (lockstep::read_element(s.result, d.data(), i) != static_cast<double>(tail)) return false;
  return true;
}

struct Measured {
  double first_ms = 0, best_ms = 0;
  int tried = 0, best = 0;
};

Measured measure(Report& report, cudaStream_t stream, const std::string& name, const MatmulShape& s, int most,
                 double budget_ms, bool check_tail, bool zeros = false) {
  Measured result;
  static DeviceBuffer workspace(kWorkspace);
  const MatmulPlan plan(lt_handle(), s, kWorkspace);
  const Operands operands(s, zeros);
  const auto choices = plan.candidates(most, operands.args);
  if (choices.empty()) {
    report.line(name + "  " + s.text(), {{"error", "no deterministic algorithm"}});
    return result;
  }
  std::string all;
  for (const AlgorithmChoice& choice : choices) {
    double ms = 0;
    try {
      ms = time_ms(
          stream, [&] { plan.run(stream, operands.args, choice, workspace.data()); }, budget_ms);
    } catch (const std::exception& error) {
      all += " x";
      cudaGetLastError();
      continue;
    }
    char text[32];
    std::snprintf(text, sizeof(text), " %.0f", s.flops() / ms / 1e9);
    all += text;
    if (result.tried++ == 0) result.first_ms = ms;
    if (result.best_ms == 0 || ms < result.best_ms) {
      result.best_ms = ms;
      result.best = static_cast<int>(&choice - choices.data());
    }
  }
  if (result.tried == 0) {
    report.line(name + "  " + s.text(), {{"error", "no algorithm ran"}});
    return result;
  }
  const AlgorithmChoice& best = choices[static_cast<size_t>(result.best)];
  // The same bits again, from the same start.
  const auto run_once = [&] {
    fill_random(operands.d.data(), s.result, s.batch * s.m * s.n, 3, 1.0f);
    require(cudaDeviceSynchronize(), "fill");
    plan.run(stream, operands.args, best, workspace.data());
    return checksum(operands.d.data(), operands.d.bytes());
  };
  const uint64_t bits = run_once();
  bool equal = run_once() == bits;
  // And again while another stream keeps some of the multiprocessors busy.
  static cudaStream_t busy = [] {
    cudaStream_t made;
    require(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
    return made;
  }();
  static DeviceBuffer load = random_buffer(DType::kF32, 64 << 20, 9);
  for (int i = 0; i < 6; ++i) {
    fill_random(operands.d.data(), s.result, s.batch * s.m * s.n, 3, 1.0f);
    require(cudaDeviceSynchronize(), "fill");
    for (int k = 0; k < 6; ++k)
      tree_sum(busy, DType::kF32, {{load.data(), load.as<float>() + (32 << 20)}, 2}, false, load.data(),
               (32 << 20) - 4096 * i);
    plan.run(stream, operands.args, best, workspace.data());
    equal = checksum(operands.d.data(), operands.d.bytes()) == bits && equal;
  }
  const auto parsed = AlgorithmChoice::parse(best.text());
  const bool stored = parsed && plan.accepts(*parsed);
  const bool tail = !check_tail || keeps_inner_tail(plan, best, workspace.data(), stream);
  report.line(name + "  " + s.text(), {{"first", s.flops() / result.first_ms / 1e9},
                                       {"best", s.flops() / result.best_ms / 1e9},
                                       {"ms", result.best_ms},
                                       {"gain_%", 100 * (result.first_ms / result.best_ms - 1)},
                                       {"pick", static_cast<double>(result.best)},
                                       {"bits", equal ? "equal" : "DIFFER"},
                                       {"stored", stored ? "ok" : "REFUSED"},
                                       {"tail", tail ? "ok" : "LOST"},
                                       {"id", static_cast<double>(best.id)},
                                       {"tile", static_cast<double>(best.tile)},
                                       {"stages", static_cast<double>(best.stages)},
                                       {"cluster", static_cast<double>(best.cluster)},
                                       {"ws", static_cast<double>(best.workspace)},
                                       {"TFLOP/s_of_all", all}});
  return result;
}

void ceilings(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  MatmulShape s{.m = 8192, .n = 8192, .k = 8192};
  for (const bool transpose_b : {false, true}) {
    s.transpose_b = transpose_b;
    measure(report, stream, "ceiling", s, 8, 60, !transpose_b);
  }
  s.transpose_b = false;
  measure(report, stream, "ceiling, zeros", s, 1, 60, false, true);
  s.result = DType::kF32;
  measure(report, stream, "ceiling", s, 4, 60, false);
  s.result = s.dtype = DType::kF16;
  measure(report, stream, "ceiling", s, 4, 60, false);
  s = {.m = 4096, .n = 4096, .k = 4096, .dtype = DType::kF32, .result = DType::kF32};
  measure(report, stream, "ceiling", s, 4, 60, false);
  s.tf32 = true;
  measure(report, stream, "ceiling", s, 4, 60, false);
}

struct Linear {
  const char* name;
  int64_t in, out;
};

// Products of a model's layer: forward, gradient of the input, gradient of the weight accumulated in fp32 and
// in bf16.
void layer_products(Report& report, const char* model, int64_t tokens, const std::vector<Linear>& linears,
                    bool weight_in_out, int most, double budget) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  double first = 0, best = 0, flops = 0;
  for (const Linear& l : linears) {
    const std::string name = std::string(model) + " " + l.name;
    const MatmulShape forward{.m = tokens, .n = l.out, .k = l.in, .transpose_b = !weight_in_out};
    const MatmulShape input{.m = tokens, .n = l.in, .k = l.out, .transpose_b = weight_in_out};
    MatmulShape weight = weight_in_out ? MatmulShape{.m = l.in, .n = l.out, .k = tokens, .transpose_a = true}
                                       : MatmulShape{.m = l.out, .n = l.in, .k = tokens, .transpose_a = true};
    weight.accumulate = true;
    for (const auto& [suffix, shape] :
         {std::pair{" y", forward}, std::pair{" dx", input}, std::pair{" dw", weight}}) {
      const Measured m =
          measure(report, stream, name + suffix, shape, most, budget, shape.transpose_a && tokens == 65536);
      first += m.first_ms;
      best += m.best_ms;
      flops += shape.flops();
    }
    weight.result = DType::kF32;
    measure(report, stream, name + " dw", weight, most, budget, false);
  }
  report.line(
      std::string(model) + " all products of a layer",
      {{"first_ms", first}, {"best_ms", best}, {"first", flops / first / 1e9}, {"best", flops / best / 1e9}});
}

void products(Report& report) {
  layer_products(report, "gpt2", 65536,
                 {{"qkv", 768, 2304}, {"proj", 768, 768}, {"fc", 768, 3072}, {"fc2", 3072, 768}}, true, 8,
                 10);
  layer_products(report, "llama1b", 16384,
                 {{"qkv", 2048, 2560}, {"o", 2048, 2048}, {"gate_up", 2048, 11264}, {"down", 5632, 2048}},
                 false, 8, 10);
  layer_products(report, "llama7b", 8192,
                 {{"qkv", 4096, 12288}, {"o", 4096, 4096}, {"gate_up", 4096, 22016}, {"down", 11008, 4096}},
                 false, 6, 15);
}

// Fused endings beside the plain product.
void epilogues(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const auto with = [](MatmulShape s, Epilogue e) {
    s.epilogue = e;
    return s;
  };
  const MatmulShape qkv{.m = 65536, .n = 2304, .k = 768};
  const MatmulShape fc{.m = 65536, .n = 3072, .k = 768};
  const MatmulShape dfc{.m = 65536, .n = 3072, .k = 768, .transpose_b = true};
  MatmulShape dw{.m = 768, .n = 3072, .k = 65536, .transpose_a = true};
  dw.accumulate = true;
  for (const auto& s :
       {qkv, with(qkv, Epilogue::kBias), fc, with(fc, Epilogue::kBias), with(fc, Epilogue::kGeluAuxBias),
        with(fc, Epilogue::kGeluAux), dfc, with(dfc, Epilogue::kDGelu), with(dfc, Epilogue::kDGeluBiasGrad),
        dw, with(dw, Epilogue::kBiasGradB)})
    measure(report, stream, "gpt2 epilogue", s, 8, 12, false);
}

// The head in chunks of rows: logits, loss and gradient in place, dx, dw accumulated. Time for all tokens.
void head(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  struct Model {
    const char* name;
    int64_t tokens, width, classes;
  };
  for (const Model& model : {Model{"gpt2", 65536, 768, 50304}, Model{"llama1b", 16384, 2048, 32000}})
    for (const int64_t rows : {2048, 4096, 8192, 16384}) {
      DeviceBuffer workspace(kWorkspace), logits(rows * model.classes * 2), lse(rows * 4), small(1024);
      DeviceBuffer x = random_buffer(DType::kBF16, rows * model.width, 1), dx(rows * model.width * 2);
      DeviceBuffer table = random_buffer(DType::kBF16, model.classes * model.width, 2, 0.05f);
      DeviceBuffer dtable = random_buffer(DType::kF32, model.classes * model.width, 3);
      std::vector<int32_t> ids(static_cast<size_t>(rows));
      for (size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(model.classes));
      DeviceBuffer labels(rows * 4);
      require(cudaMemcpy(labels.data(), ids.data(), ids.size() * 4, cudaMemcpyHostToDevice), "copy");
      const float one = 1.0f;
      require(cudaMemset(small.data(), 0, 1024), "memset");
      require(cudaMemcpy(small.data(), &one, 4, cudaMemcpyHostToDevice), "copy");
      DeviceBuffer losses(rows * 4);
      const CrossEntropyShape loss{rows, model.classes, DType::kBF16, -100, 0.0f};
      struct Product {
        std::unique_ptr<MatmulPlan> plan;
        AlgorithmChoice choice;
        MatmulArgs args;
        double ms;
      };
      const auto make = [&](const MatmulShape& s, const MatmulArgs& args) {
        Product p{std::make_unique<MatmulPlan>(lt_handle(), s, kWorkspace), {}, args, 0};
        for (const AlgorithmChoice& choice : p.plan->candidates(6, args)) {
          const double ms = time_ms(
              stream, [&] { p.plan->run(stream, args, choice, workspace.data()); }, 8);
          if (p.ms == 0 || ms < p.ms) p.ms = ms, p.choice = choice;
        }
        return p;
      };
      const Product y = make({.m = rows, .n = model.classes, .k = model.width, .transpose_b = true},
                             {x.data(), table.data(), logits.data()});
      const Product d =
          make({.m = rows, .n = model.width, .k = model.classes}, {logits.data(), table.data(), dx.data()});
      MatmulShape w{
          .m = model.classes, .n = model.width, .k = rows, .transpose_a = true, .result = DType::kF32};
      w.accumulate = true;
      const Product g = make(w, {logits.data(), x.data(), dtable.data()});
      const auto entropy = [&] {
        cross_entropy_in_place(stream, loss, small.as<float>(), logits.data(), labels.as<int32_t>(),
                               small.as<float>() + 16, small.as<int64_t>() + 16, lse.as<float>(),
                               reinterpret_cast<BadLabel*>(small.as<char>() + 512), losses.data());
      };
      const double ms = time_ms(
          stream,
          [&] {
            y.plan->run(stream, y.args, y.choice, workspace.data());
            entropy();
            d.plan->run(stream, d.args, d.choice, workspace.data());
            g.plan->run(stream, g.args, g.choice, workspace.data());
          },
          60);
      const double entropy_ms = time_ms(stream, entropy);
      const double chunks = static_cast<double>(model.tokens) / static_cast<double>(rows);
      report.line(std::string(model.name) + " head in chunks of " + std::to_string(rows) + " rows",
                  {{"total_ms", ms * chunks},
                   {"TFLOP/s", 3 * y.plan->shape().flops() / ms / 1e9},
                   {"logits_ms", y.ms * chunks},
                   {"loss_ms", entropy_ms * chunks},
                   {"loss_GB/s", 2.0 * rows * model.classes * 2 / entropy_ms / 1e6},
                   {"dx_ms", d.ms * chunks},
                   {"dw_ms", g.ms * chunks},
                   {"logits_MiB", static_cast<double>(rows * model.classes * 2 / kMiB)}});
    }
}

// ---- attention
// ------------------------------------------------------------------------------------------------

AttentionShape attention_shape(int64_t b, int64_t h, int64_t kv, int64_t t, int64_t d, bool packed) {
  AttentionShape s;
  s.batch = b;
  s.queries = s.keys = t;
  s.heads = h;
  s.kv_heads = kv;
  s.head_dim = d;
  s.causal = true;
  s.scale = 1.0f / std::sqrt(static_cast<float>(d));
  const int64_t width = packed ? (h + 2 * kv) * d : 0;
  s.q = packed ? HeadLayout{t * width, width, d} : HeadLayout{t * h * d, h * d, d};
  s.k = s.v = packed ? HeadLayout{t * width, width, d} : HeadLayout{t * kv * d, kv * d, d};
  s.out = {t * h * d, h * d, d};
  return s;
}

struct AttentionBuffers {
  DeviceBuffer q, k, v, out, lse, dout, dq, dk, dv, out2, lse2;
  AttentionBuffers(const AttentionShape& s, bool packed) {
    const int64_t rows = s.batch * s.queries;
    const int64_t wide = rows * s.heads * s.head_dim, narrow = rows * s.kv_heads * s.head_dim;
    q = random_buffer(s.dtype, packed ? wide + 2 * narrow : wide, 1, 2.0f);
    k = random_buffer(s.dtype, narrow, 2, 2.0f);
    v = random_buffer(s.dtype, narrow, 3, 2.0f);
    dout = random_buffer(s.dtype, wide, 4, 2.0f);
    out = DeviceBuffer(wide * 2);
    out2 = DeviceBuffer(wide * 2);
    lse = DeviceBuffer(rows * s.heads * 4);
    lse2 = DeviceBuffer(rows * s.heads * 4);
    dq = DeviceBuffer((packed ? wide + 2 * narrow : wide) * 2);
    dk = DeviceBuffer(narrow * 2);
    dv = DeviceBuffer(narrow * 2);
  }
};

double forward_flops(const AttentionShape& s) {
  return 4.0 * s.batch * s.heads * s.head_dim * (0.5 * s.queries * (s.queries + 1));
}

double relative_difference(const void* a, const void* b, int64_t count) {
  std::vector<uint16_t> x(static_cast<size_t>(count)), y(static_cast<size_t>(count));
  require(cudaMemcpy(x.data(), a, x.size() * 2, cudaMemcpyDeviceToHost), "copy");
  require(cudaMemcpy(y.data(), b, y.size() * 2, cudaMemcpyDeviceToHost), "copy");
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = lockstep::from_bf16(x[i]), w = lockstep::from_bf16(y[i]);
    difference += (u - w) * (u - w);
    norm += u * u;
  }
  return std::sqrt(difference / norm);
}

void attention_section(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
#ifdef LOCKSTEP_CUDNN_FRONTEND
  const cudnnHandle_t handle = make_cudnn_handle();
  set_cudnn_stream(handle, stream);
#endif
  struct Case {
    const char* name;
    int64_t b, h, kv, t, d;
    bool packed;
  };
  for (const Case& c :
       {Case{"gpt2", 64, 12, 12, 1024, 64, true}, Case{"gpt2 apart", 64, 12, 12, 1024, 64, false},
        Case{"llama7b", 4, 32, 32, 2048, 128, true}, Case{"llama1b", 8, 32, 4, 2048, 64, true},
        Case{"long", 1, 32, 32, 8192, 128, true}}) {
    const std::string name = std::string(c.name) + " B" + std::to_string(c.b) + " H" + std::to_string(c.h) +
                             "/" + std::to_string(c.kv) + " T" + std::to_string(c.t) + " D" +
                             std::to_string(c.d);
    const AttentionShape s = attention_shape(c.b, c.h, c.kv, c.t, c.d, c.packed);
    const AttentionBuffers x(s, c.packed);
    const auto part = [&](const DeviceBuffer& packed, const DeviceBuffer& apart, int64_t first) -> void* {
      return c.packed ? packed.as<char>() + first * 2 : apart.as<char>();
    };
    void* const k = part(x.q, x.k, c.h * c.d);
    void* const v = part(x.q, x.v, (c.h + c.kv) * c.d);
    void* const dk = part(x.dq, x.dk, c.h * c.d);
    void* const dv = part(x.dq, x.dv, (c.h + c.kv) * c.d);
    const double flops = forward_flops(s);
    const auto gradient_bits = [&] {
      return checksum(x.dq.data(), x.dq.bytes()) ^ (checksum(x.dk.data(), x.dk.bytes()) << 1) ^
             (checksum(x.dv.data(), x.dv.bytes()) << 2);
    };
    // Ours.
    DeviceBuffer workspace(attention_grad_workspace(s));
    const auto run_forward = [&] {
      attention(stream, s, x.q.data(), k, v, x.out2.data(), x.lse2.as<float>());
    };
    const auto run_backward = [&] {
      attention_grad(stream, s, x.dout.data(), x.q.data(), k, v, x.out2.data(), x.lse2.as<float>(),
                     x.dq.data(), dk, dv, workspace.data());
    };
    double ms = time_ms(stream, run_forward);
    report.line(name + " own forward", {{"ms", ms}, {"TFLOP/s", flops / ms / 1e9}});
    ms = time_ms(stream, run_backward);
    require(cudaDeviceSynchronize(), "attention");
    uint64_t bits = gradient_bits();
    int equal = 0;
    for (int i = 0; i < 5; ++i) {
      run_backward();
      equal += gradient_bits() == bits;
    }
    report.line(
        name + " own backward",
        {{"ms", ms}, {"TFLOP/s", 2.5 * flops / ms / 1e9}, {"equal_of_5", static_cast<double>(equal)}});
    DeviceBuffer own_dq(x.dq.bytes());
    require(
        cudaMemcpy(own_dq.data(), x.dq.data(), static_cast<size_t>(x.dq.bytes()), cudaMemcpyDeviceToDevice),
        "copy");
#ifdef LOCKSTEP_CUDNN_FRONTEND
    if (const std::string why = SdpaPlan::refusal(s); !why.empty())
      report.line(name + " cudnn refused", {{"why", why}});
    try {
      Timer build;
      const SdpaPlan forward(handle, s, SdpaPlan::Direction::kForward);
      const double build_ms = build.ms();
      DeviceBuffer space(forward.workspace_bytes());
      const auto run = [&] {
        forward.forward(handle, x.q.data(), k, v, x.out.data(), x.lse.as<float>(), space.data());
      };
      ms = time_ms(stream, run);
      require(cudaDeviceSynchronize(), "attention");
      report.line(name + " cudnn forward",
                  {{"ms", ms},
                   {"TFLOP/s", flops / ms / 1e9},
                   {"build_ms", build_ms},
                   {"workspace_MiB", static_cast<double>(space.bytes()) / kMiB},
                   {"against_own", relative_difference(x.out.data(), x.out2.data(), x.out.bytes() / 2)},
                   {"plan", forward.plan_name()}});
      for (const bool deterministic : {true, false}) {
        Timer build_backward;
        const SdpaPlan backward(handle, s, SdpaPlan::Direction::kBackward, deterministic);
        const double backward_build_ms = build_backward.ms();
        const std::vector<uint8_t> stored = backward.serialized();
        Timer read;
        const SdpaPlan again(handle, s, SdpaPlan::Direction::kBackward, stored);
        const double read_ms = read.ms();
        DeviceBuffer backward_space(backward.workspace_bytes());
        const auto run_plan = [&](const SdpaPlan& plan) {
          plan.backward(handle, x.dout.data(), x.q.data(), k, v, x.out.data(), x.lse.as<float>(), x.dq.data(),
                        dk, dv, backward_space.data());
        };
        ms = time_ms(stream, [&] { run_plan(backward); });
        require(cudaDeviceSynchronize(), "attention");
        const double difference = relative_difference(own_dq.data(), x.dq.data(), x.dq.bytes() / 2);
        bits = gradient_bits();
        equal = 0;
        for (int i = 0; i < 20; ++i) {
          run_plan(i % 2 == 0 ? backward : again);
          equal += gradient_bits() == bits;
        }
        report.line(name + (deterministic ? " cudnn backward deterministic" : " cudnn backward plain"),
                    {{"ms", ms},
                     {"TFLOP/s", 2.5 * flops / ms / 1e9},
                     {"build_ms", backward_build_ms},
                     {"read_ms", read_ms},
                     {"stored_bytes", static_cast<double>(stored.size())},
                     {"workspace_MiB", static_cast<double>(backward_space.bytes()) / kMiB},
                     {"equal_of_20", static_cast<double>(equal)},
                     {"against_own", difference},
                     {"plan", backward.plan_name()}});
        if (!deterministic || c.b == 1 || !c.packed) continue;
        // One sequence at a time: the same bits from a smaller workspace.
        const AttentionShape one = attention_shape(1, c.h, c.kv, c.t, c.d, true);
        const SdpaPlan slice(handle, one, SdpaPlan::Direction::kBackward);
        const auto sliced = [&] {
          for (int64_t b = 0; b < c.b; ++b) {
            const auto at = [&](const void* p, int64_t stride) {
              return static_cast<char*>(const_cast<void*>(p)) + b * stride * 2;
            };
            slice.backward(handle, at(x.dout.data(), s.out.batch), at(x.q.data(), s.q.batch),
                           at(k, s.k.batch), at(v, s.v.batch), at(x.out.data(), s.out.batch),
                           x.lse.as<float>() + b * c.h * c.t, at(x.dq.data(), s.q.batch), at(dk, s.k.batch),
                           at(dv, s.v.batch), backward_space.data());
          }
        };
        run_plan(backward);
        const uint64_t whole = gradient_bits();
        sliced();
        const bool same = gradient_bits() == whole;
        report.line(name + " cudnn backward, one sequence at a time",
                    {{"ms", time_ms(stream, sliced)},
                     {"workspace_MiB", static_cast<double>(slice.workspace_bytes()) / kMiB},
                     {"bits", same ? "equal" : "DIFFER"}});
      }
    } catch (const std::exception& error) {
      report.line(name + " cudnn", {{"error", error.what()}});
      cudaGetLastError();
    }
#endif
  }
}

// What a step is made of, captured into one graph: the replay must have the bits of the direct launches.
void capture(Report& report) {
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const int64_t B = 8, T = 1024, H = 12, D = 64, C = H * D, rows = B * T;
  const AttentionShape s = attention_shape(B, H, H, T, D, true);
  const DeviceBuffer x = random_buffer(DType::kBF16, rows * C, 1),
                     w = random_buffer(DType::kBF16, C * 3 * C, 2, 0.05f);
  const DeviceBuffer dout = random_buffer(DType::kBF16, rows * C, 3),
                     gain = random_buffer(DType::kBF16, C, 4);
  DeviceBuffer normed(rows * C * 2), qkv(rows * 3 * C * 2), out(rows * C * 2), lse(B * H * T * 4),
      dqkv(rows * 3 * C * 2);
  DeviceBuffer dw(C * 3 * C * 4), rstd(rows * 4), workspace(kWorkspace), delta(attention_grad_workspace(s));
  require(cudaMemset(dw.data(), 0, static_cast<size_t>(dw.bytes())), "memset");
  const MatmulPlan forward(lt_handle(), {.m = rows, .n = 3 * C, .k = C}, kWorkspace);
  const MatmulArgs forward_args{normed.data(), w.data(), qkv.data()};
  const MatmulPlan weight(
      lt_handle(), {.m = C, .n = 3 * C, .k = rows, .transpose_a = true, .result = DType::kF32}, kWorkspace);
  const MatmulArgs weight_args{normed.data(), dqkv.data(), dw.data()};
  const AlgorithmChoice forward_choice = forward.candidates(1, forward_args).at(0);
  const AlgorithmChoice weight_choice = weight.candidates(1, weight_args).at(0);
  const auto part = [&](const DeviceBuffer& packed, int64_t first) {
    return packed.as<char>() + first * C * 2;
  };
#ifdef LOCKSTEP_CUDNN_FRONTEND
  const cudnnHandle_t handle = make_cudnn_handle();
  set_cudnn_stream(handle, stream);
  const SdpaPlan sdpa(handle, s, SdpaPlan::Direction::kForward),
      sdpa_grad(handle, s, SdpaPlan::Direction::kBackward);
  DeviceBuffer sdpa_space(std::max(sdpa.workspace_bytes(), sdpa_grad.workspace_bytes()));
#endif
  const auto step = [&](bool library) {
    row_norm(
        stream, {rows, C, DType::kBF16, false, false},
        {x.data(), nullptr, gain.data(), nullptr, nullptr, normed.data(), nullptr, rstd.as<float>(), 1e-5f});
    forward.run(stream, forward_args, forward_choice, workspace.data());
#ifdef LOCKSTEP_CUDNN_FRONTEND
    if (library) {
      sdpa.forward(handle, qkv.data(), part(qkv, 1), part(qkv, 2), out.data(), lse.as<float>(),
                   sdpa_space.data());
      sdpa_grad.backward(handle, dout.data(), qkv.data(), part(qkv, 1), part(qkv, 2), out.data(),
                         lse.as<float>(), dqkv.data(), part(dqkv, 1), part(dqkv, 2), sdpa_space.data());
    }
#endif
    if (!library) {
      attention(stream, s, qkv.data(), part(qkv, 1), part(qkv, 2), out.data(), lse.as<float>());
      attention_grad(stream, s, dout.data(), qkv.data(), part(qkv, 1), part(qkv, 2), out.data(),
                     lse.as<float>(), dqkv.data(), part(dqkv, 1), part(dqkv, 2), delta.data());
    }
    weight.run(stream, weight_args, weight_choice, workspace.data());
  };
  for (const bool library : {false, true}) {
    step(library);
    const uint64_t direct = checksum(dw.data(), dw.bytes());
    const double direct_ms = time_ms(stream, [&] { step(library); });
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    step(library);
    cudaGraph_t graph;
    require(cudaStreamEndCapture(stream, &graph), "capture");
    size_t nodes = 0;
    require(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
    cudaGraphExec_t exec;
    require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    require(cudaMemset(dw.data(), 0xff, static_cast<size_t>(dw.bytes())), "memset");
    const double replay_ms = time_ms(stream, [&] { require(cudaGraphLaunch(exec, stream), "replay"); });
    const bool equal = checksum(dw.data(), dw.bytes()) == direct;
    report.line(std::string("norm, product, attention, its gradient, dw: ") + (library ? "cudnn" : "own"),
                {{"direct_ms", direct_ms},
                 {"replay_ms", replay_ms},
                 {"nodes", static_cast<double>(nodes)},
                 {"bits", equal ? "equal" : "DIFFER"}});
  }
}

// ---- two processes on one GPU
// ---------------------------------------------------------------------------------

struct IpcMessage {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
  int64_t bytes;
};

// The other process: maps the first one's buffer and sums it with its own.
int ipc_child() {
  Report report("gpu_limits");
  report.title("two processes on one GPU");
  IpcMessage message{};
  if (read(0, &message, sizeof(message)) != static_cast<ssize_t>(sizeof(message))) return 1;
  require(cudaFree(nullptr), "context");
  Timer open;
  void* peer = nullptr;
  require(cudaIpcOpenMemHandle(&peer, message.memory, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
  const double open_ms = open.ms();
  Timer open_event;
  cudaEvent_t event;
  require(cudaIpcOpenEventHandle(&event, message.event), "cudaIpcOpenEventHandle");
  const double event_ms = open_event.ms();
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  require(cudaStreamWaitEvent(stream, event, 0), "wait");
  const int64_t count = message.bytes / 4;
  DeviceBuffer own = random_buffer(DType::kF32, count, 2), out(message.bytes), expected(message.bytes);
  DeviceBuffer copy = random_buffer(DType::kF32, count, 1);
  require(cudaDeviceSynchronize(), "fill");
  const TreeSources shared{{peer, own.data()}, 2}, local{{copy.data(), own.data()}, 2};
  const double ms = time_ms(stream, [&] { tree_sum(stream, DType::kF32, shared, false, out.data(), count); });
  const double local_ms =
      time_ms(stream, [&] { tree_sum(stream, DType::kF32, local, false, expected.data(), count); });
  const bool equal = checksum(out.data(), out.bytes()) == checksum(expected.data(), expected.bytes());
  report.line("peer's buffer of " + std::to_string(message.bytes / kMiB) + " MiB",
              {{"open_ms", open_ms},
               {"open_event_ms", event_ms},
               {"sum_ms", ms},
               {"GB/s", 3.0 * message.bytes / ms / 1e6},
               {"local_GB/s", 3.0 * message.bytes / local_ms / 1e6},
               {"bits", equal ? "equal" : "DIFFER"}});
  require(cudaIpcCloseMemHandle(peer), "cudaIpcCloseMemHandle");
  return 0;
}

void ipc(Report& report, const char* program) {
  int ends[2];
  if (pipe(ends) != 0) return report.line("pipe", {{"error", "failed"}});
  const int64_t bytes = 1024 * kMiB;
  DeviceBuffer buffer = random_buffer(DType::kF32, bytes / 4, 1);
  cudaEvent_t event;
  require(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming), "event");
  require(cudaEventRecord(event, nullptr), "event");
  IpcMessage message{};
  message.bytes = bytes;
  Timer timer;
  require(cudaIpcGetMemHandle(&message.memory, buffer.data()), "cudaIpcGetMemHandle");
  require(cudaIpcGetEventHandle(&message.event, event), "cudaIpcGetEventHandle");
  report.line("exporting memory and an event", {{"ms", timer.ms()}});
  require(cudaDeviceSynchronize(), "fill");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], 0);
    close(ends[1]);
    execl(program, program, "--ipc-child", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[0]);
  const bool sent = write(ends[1], &message, sizeof(message)) == static_cast<ssize_t>(sizeof(message));
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  report.line("other process",
              {{"sent", sent ? "yes" : "no"}, {"exit", static_cast<double>(WEXITSTATUS(status))}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::strcmp(argv[1], "--ipc-child") == 0) return ipc_child();
  } catch (const std::exception& error) {
    std::printf("other process: %s\n", error.what());
    return 2;
  }
  Report report("gpu_limits");
  const std::set<std::string> wanted(argv + 1, argv + argc);
  const std::vector<std::pair<const char*, std::function<void()>>> sections = {
      {"startup", [&] { startup(report); }},
      {"copies", [&] { copies(report); }},
      {"launches", [&] { launches(report); }},
      {"ipc", [&] { ipc(report, "/proc/self/exe"); }},
      {"attention", [&] { attention_section(report); }},
      {"capture", [&] { capture(report); }},
      {"ceilings", [&] { ceilings(report); }},
      {"epilogues", [&] { epilogues(report); }},
      {"head", [&] { head(report); }},
      {"products", [&] { products(report); }},
  };
  for (const auto& [name, run] : sections) {
    if (!wanted.empty() && wanted.count(name) == 0) continue;
    report.title(name);
    try {
      run();
      require(cudaDeviceSynchronize(), "after a section");
    } catch (const std::exception& error) {
      report.line(std::string(name) + " stopped", {{"error", error.what()}});
      cudaGetLastError();
    }
  }
  return 0;
}
