// The CUDA backend on a machine with a GPU:
//
//   cuda_check ops CASES [JOBS [FILE ...]]: every op case, or those of some files, against the interpreter,
//   and
//     two runs against each other
//   cuda_check train: small models against the CPU backend, and two runs against each other
//   cuda_check failure JOB OUTPUT N: trains a job on a GPU that fails at its N-th matrix product; code 0
//   where
//     that was told as it should be
//
// Each file of cases and each model runs in a process of its own: a device that faulted stays unusable for
// the process that made it. Ends with a table of what failed and what was refused.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "backend/cuda/cuda_backend.h"
#include "base/error.h"
#include "base/philox.h"
#include "device/trapping_gpu.h"
#include "job/parse.h"
#include "model/encoder.h"
#include "model/gpt.h"
#include "model/llama.h"
#include "model/resnet.h"
#include "model/stored_params.h"
#include "model/tabular.h"
#include "observe/summary.h"
#include "ops/op_driver.h"
#include "run/train_run.h"
#include "train/step/synthetic.h"
#include "train/step/train_step.h"

namespace lockstep::testing {
namespace {

template <typename... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  const std::string line = fmt::format(text, std::forward<Args>(args)...) + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

// Bodies in processes of their own, `jobs` at a time; how many did not end with 0.
int in_processes(const std::vector<std::pair<std::string, std::function<int()>>>& bodies, int jobs) {
  std::map<pid_t, std::string> running;
  int failed = 0;
  const auto wait_for_one = [&] {
    int status = 0;
    const pid_t pid = wait(&status);
    if (WIFSIGNALED(status)) say("CRASH {}: signal {}", running[pid], WTERMSIG(status));
    failed += status != 0;
    running.erase(pid);
  };
  for (const auto& [name, body] : bodies) {
    if (static_cast<int>(running.size()) >= jobs) wait_for_one();
    const pid_t pid = fork();
    if (pid == 0) {
      int result = 1;
      try {
        result = body();
      } catch (const std::exception& error) {
        say("FAIL {}: {}", name, error.what());
      }
      std::fflush(stdout);
      _exit(result);
    }
    running[pid] = name;
  }
  while (!running.empty()) wait_for_one();
  return failed;
}

PassOptions forward_only() {
  PassOptions options;
  options.disabled = {"autodiff"};
  return options;
}

double worst_error(const RefTensor& got, const RefTensor& want) {
  double scale = 1.0, worst = 0;
  for (const double x : want.data)
    if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
  for (int64_t i = 0; i < want.numel(); ++i) {
    if (want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) continue;
    const double error = std::fabs(got[i] - want[i]) / scale;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Whether it ran, right or wrong; what is wrong is said.
bool check_case(Backend& backend, const OpCase& op_case, const std::string& dtype, bool differentiated,
                int& wrong) {
  const std::string label = fmt::format("{} {}{}", op_case.label(), dtype, differentiated ? " gradient" : "");
  const Graph graph = case_graph(op_case, differentiated);
  const RefTensors inputs = make_inputs(graph, op_case);
  try {
    const auto got = run_on_backend(graph, inputs, backend, forward_only());
    const auto want = interpret(graph, inputs, {.round = true});
    for (size_t i = differentiated ? 1 : 0; i < want.size(); ++i) {
      const double error = worst_error(got[i], want[i]);
      if (error <= tolerance_for(op_case, dtype)) continue;
      say("FAIL {}, output {} ({}): error {:.3g}, allowed {:.3g}", label, i,
          graph.name(graph.outputs()[i].value), error, tolerance_for(op_case, dtype));
      ++wrong;
    }
    if (run_for_bytes(graph, inputs, backend, forward_only()) !=
        run_for_bytes(graph, inputs, backend, forward_only())) {
      say("BITS {}: two runs differ", label);
      ++wrong;
    }
  } catch (const UserError& error) {
    const std::string text = error.what();
    if (text.find("cannot run") == std::string::npos) throw;
    const size_t reasons = text.find('\n');
    say("REFUSED {}: {} |{}", label, first_line(text).substr(0, 160),
        reasons == std::string::npos ? "" : first_line(text.substr(reasons + 1)));
    return false;
  }
  return true;
}

int check_file(const std::string& file, const std::vector<OpCase>& cases) {
  const auto backend = make_cuda_backend({});
  int ran = 0, wrong = 0, refused = 0;
  for (const OpCase& base : cases)
    for (const std::string& dtype : base.dtypes) {
      const OpCase op_case = with_dtype(base, dtype);
      for (const bool differentiated : {false, true}) {
        if (differentiated && !op_case.differentiate) continue;
        try {
          (check_case(*backend, op_case, dtype, differentiated, wrong) ? ran : refused)++;
        } catch (const DeviceError&) {
          say("LAST {} {}{}", op_case.label(), dtype, differentiated ? " gradient" : "");
          throw;
        } catch (const std::exception& error) {
          say("FAIL {} {}{}: {}", op_case.label(), dtype, differentiated ? " gradient" : "",
              first_line(error.what()).substr(0, 400));
          ++wrong;
        }
      }
    }
  say("FILE {:<24} ran {:>4}  wrong {:>3}  refused {:>3}", file, ran, wrong, refused);
  return wrong == 0 ? 0 : 1;
}

// `wanted`: names of files, without the ending; none: all of them.
int check_ops(const std::string& folder, int jobs, const std::set<std::string>& wanted) {
  std::map<std::string, std::vector<OpCase>> files;
  for (const OpCase& op_case : read_cases(folder))
    if (wanted.empty() || wanted.count(std::filesystem::path(op_case.file).stem()) > 0)
      files[op_case.file].push_back(op_case);
  std::vector<std::pair<std::string, std::function<int()>>> bodies;
  for (const auto& [file, cases] : files)
    bodies.emplace_back(file, [&file = file, &cases = cases] { return check_file(file, cases); });
  const int failed = in_processes(bodies, jobs);
  say("{} files of cases, {} with failures", files.size(), failed);
  return failed == 0 ? 0 : 1;
}

struct Outcome {
  std::string hash;
  std::vector<double> losses, norms;
};

Outcome train_on(Backend& backend, const Model& model, TrainOptions options, int64_t microbatches,
                 int64_t steps) {
  options.microbatches = microbatches;
  options.leaves = 3;
  options.ema = 0.9;
  options.seed = 5;
  TrainStep train(model, backend, options, nullptr);
  Outcome outcome;
  for (int64_t step = 1; step <= steps; ++step) {
    const StepResult result =
        train.run(1e-3, [&](int64_t m) { set_synthetic_inputs(train, model, 11, step * microbatches + m); });
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.grad_norm);
  }
  outcome.hash = train.weights_sha256();
  return outcome;
}

int check_model(const std::string& name, const Model& model, const TrainOptions& options, double tolerance,
                int64_t steps = 8, const DeviceOptions& device = {}) {
  const auto cuda = make_cuda_backend(device);
  const auto cpu = make_cpu_backend(4);
  const Outcome got = train_on(*cuda, model, options, 6, steps),
                again = train_on(*cuda, model, options, 6, steps);
  const Outcome want = train_on(*cpu, model, options, 6, steps);
  double worst = 0;
  for (size_t i = 0; i < want.losses.size(); ++i) {
    worst = std::max(worst, std::fabs(got.losses[i] - want.losses[i]) / std::fabs(want.losses[i]));
    say("  {} step {}: loss {:.6f} (cpu {:.6f}), norm {:.6f} (cpu {:.6f})", name, i + 1, got.losses[i],
        want.losses[i], got.norms[i], want.norms[i]);
  }
  const bool same = got.hash == again.hash;
  const bool right = worst <= tolerance;
  say("{} {}: loss differs from the cpu by {:.3g} (allowed {:.3g}), two runs {}",
      right && same ? "OK" : "FAIL", name, worst, tolerance, same ? "equal" : "DIFFER");
  return right && same ? 0 : 1;
}

LlamaSizes small_llama() {
  LlamaSizes sizes;
  sizes.layers = 2;
  sizes.dim = 128;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.hidden = 352;
  sizes.vocab = 103;
  sizes.batch = 2;
  sizes.seq = 128;
  return sizes;
}

// What parameters begin with, to the bits of the host's, also from the middle of a tensor on.
int check_draws() {
  constexpr int64_t kCount = 100003;
  using Kind = RandomFill::Kind;
  const std::vector<RandomFill> fills = {{Kind::kConstant, 0.25f, 0, 1, 2},
                                         {Kind::kNormal, 0.5f, 0.02f, 0x123456789abcdefull, 0xfedcba987ull},
                                         {Kind::kNormal, 0, 1, 3, 4, 1000, 1777},
                                         {Kind::kUniform, -0.1f, 0.1f, 5, 6}};
  const auto cuda = make_cuda_backend({});
  const auto device = cuda->allocate(kCount * 4);
  int wrong = 0;
  for (const RandomFill& fill : fills)
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
      for (const int64_t first : {0, 1, 16386, 1 << 30}) {
        std::vector<float> want(kCount);
        fill.fill(first, want);
        std::vector<std::byte> stored(kCount * 4), got(kCount * 4);
        for (int64_t i = 0; i < kCount; ++i)
          write_element(dtype, stored.data(), i, static_cast<double>(want[static_cast<size_t>(i)]));
        cuda->draw(fill, dtype, first, device->data(), kCount);
        cuda->download(got.data(), device->data(), kCount * size_of(dtype));
        int64_t differ = 0;
        for (int64_t i = 0; i < kCount; ++i)
          differ += read_element(dtype, got.data(), i) != read_element(dtype, stored.data(), i);
        if (differ == 0) continue;
        ++wrong;
        say("  draws of kind {} as {} from {} on: {} of {} differ", static_cast<int>(fill.kind),
            name_of(dtype), first, differ, kCount);
      }
  say("{} draws: {} of {} fills differ from the host's", wrong == 0 ? "OK" : "FAIL", wrong,
      fills.size() * 12);
  return wrong == 0 ? 0 : 1;
}

int check_failure(const std::string& job, const std::string& output, int64_t fails_at) {
  const std::vector<std::string> settings = {"output=" + output};
  RunOptions options{.out = &std::cerr};
  options.device = [fails_at] { return make_trapping_gpu(fails_at); };
  try {
    TrainRun(load_job(job, settings), options).run();
  } catch (const DeviceError& error) {
    const RunSummary summary = read_summary(output + "/summary.json");
    const bool told = summary.status == "failed" && summary.exit_code == 1 && summary.error == error.what();
    say("{} failure: {}", told ? "OK" : "FAIL", error.what());
    return told ? 0 : 1;
  }
  say("FAIL failure: the run did not fail");
  return 1;
}

int check_training() {
  TrainOptions plain, half, rounded, pure, narrow;
  half.passes.compute = DType::kBF16;
  rounded = half;
  rounded.passes.stochastic_rounding = true;
  pure = half;
  pure.passes.recompute = Recompute::kFused;
  narrow = half;
  narrow.optimizer.moments = DType::kBF16;
  using Body = std::function<int()>;
  const std::vector<std::pair<std::string, Body>> bodies = {
      {"gpt",
       [&] {
         return check_model("gpt f32", build_gpt({2, 48, 3, 101, 2, 17, 0.1}), plain, 1e-4);
       }},
      {"gpt bf16",
       [&] {
         return check_model("gpt bf16", build_gpt({2, 128, 2, 101, 2, 128, 0.0}), half, 2e-2);
       }},
      {"gpt rounded",
       [&] {
         return check_model("gpt bf16 rounded", build_gpt({2, 48, 3, 101, 2, 17, 0.1}), rounded, 3e-2);
       }},
      {"encoder",
       [&] {
         return check_model("encoder", build_encoder({2, 48, 3, 192, 61, 3, 2, 19, 0.1, true}), plain, 1e-4);
       }},
      {"tabular",
       [&] {
         return check_model("tabular", build_tabular({3, 301, 16, 5, {33, 17}, {40, 20}, 23}), plain, 1e-4);
       }},
      {"resnet",
       [&] {
         // The last norms have 32 values per channel: with two or four, a difference in the last bit
         // becomes one of the order of the values.
         return check_model("resnet", build_resnet({18, 8, 64, 5, 8}), plain, 1e-3);
       }},
      {"resnet bf16",
       [&] {
         // Fifty layers of norms over few values magnify what bf16 rounds off, the more the further it
         // trains.
         return check_model("resnet bf16", build_resnet({50, 16, 64, 5, 8}), half, 1e-2, 1);
       }},
      {"llama", [&] { return check_model("llama", build_llama(small_llama()), plain, 1e-4); }},
      {"draws", check_draws},
      {"llama tf32",
       [&] { return check_model("llama tf32", build_llama(small_llama()), plain, 5e-3, 8, {.tf32 = true}); }},
      {"resnet tf32",
       [&] {
         return check_model("resnet tf32", build_resnet({18, 8, 64, 5, 8}), plain, 2e-2, 1, {.tf32 = true});
       }},
      {"llama bf16", [&] { return check_model("llama bf16", build_llama(small_llama()), half, 2e-2); }},
      {"llama pure",
       [&] {
         return check_model("llama bf16_pure", stored_in(DType::kBF16, build_llama(small_llama())), pure,
                            3e-2);
       }},
      {"gpt pure",
       [&] {
         return check_model("gpt bf16_pure, bf16 moments",
                            stored_in(DType::kBF16, build_gpt({2, 128, 2, 101, 2, 128, 0.1})), narrow, 3e-2);
       }},
  };
  const int failed = in_processes(bodies, 3);
  say("{} models, {} with failures", bodies.size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  using namespace lockstep::testing;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "ops" && argc > 2)
    return check_ops(argv[2], argc > 3 ? std::atoi(argv[3]) : 4, {argv + std::min(argc, 4), argv + argc});
  if (mode == "train") return check_training();
  if (mode == "failure" && argc > 4) return check_failure(argv[2], argv[3], std::atoll(argv[4]));
  std::fprintf(stderr, "usage: cuda_check ops CASES [JOBS [FILE ...]] | train | failure JOB OUTPUT N\n");
  return 2;
}
