// Every op case in every mode: backend against interpreter, gradient against finite differences, one thread
// against many (bitwise), what an op decomposes into against its reference. `op_test --matrix` prints the
// support matrix instead, `op_test --timing` how long the cases take.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "ops/op_driver.h"
#include "ops/registry.h"
#include "tensor_error.h"

namespace lockstep::testing {
namespace {

PassOptions forward_only() {
  PassOptions options;
  options.disabled = {"autodiff"};
  return options;
}

class OpCaseTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(OpCaseTest, BackendMatchesInterpreter) {
  const auto backend = make_cpu_backend(2);
  for (const std::string& dtype : GetParam().dtypes) {
    const OpCase op_case = with_dtype(GetParam(), dtype);
    for (const bool differentiated : {false, true}) {
      if (differentiated && !op_case.differentiate) continue;
      const Graph graph = case_graph(op_case, differentiated);
      const RefTensors inputs = make_inputs(graph, op_case);
      const auto want = interpret(graph, inputs, {.round = true});
      const auto got = run_on_backend(graph, inputs, *backend, forward_only());
      // The loss is there to be differentiated; as a sum of everything it cancels, and says nothing.
      for (size_t i = differentiated ? 1 : 0; i < want.size(); ++i)
        EXPECT_EQ(compare(got[i].data, want[i].data, tolerance_for(op_case, dtype), op_case.size), "")
            << op_case.label() << (differentiated ? ", gradient" : "") << ", output " << i << " ("
            << graph.name(graph.outputs()[i].value) << ")";
    }
  }
}

TEST_P(OpCaseTest, GradientMatchesFiniteDifferences) {
  if (!GetParam().differentiate) return;
  EXPECT_EQ(check_finite_differences(GetParam()), "") << GetParam().label();
}

TEST_P(OpCaseTest, SameBitsForAnyThreadCount) {
  const Graph graph = case_graph(GetParam(), GetParam().differentiate);
  const RefTensors inputs = make_inputs(graph, GetParam());
  const auto want = run_for_bytes(graph, inputs, *make_cpu_backend(1), forward_only());
  for (const int threads : {2, 3, 8})
    EXPECT_EQ(run_for_bytes(graph, inputs, *make_cpu_backend(threads), forward_only()), want)
        << GetParam().label() << " with " << threads << " threads";
}

// An op and what it decomposes into mean the same: in fp64 they differ by next to nothing, also where terms
// cancel.
TEST_P(OpCaseTest, DecompositionMatchesReference) {
  for (const bool differentiated : {false, true}) {
    if (differentiated && !GetParam().differentiate) continue;
    const Graph graph = case_graph(GetParam(), differentiated);
    const RefTensors inputs = make_inputs(graph, GetParam());
    const auto want = interpret(graph, inputs);
    const auto got = interpret(decomposed(graph), inputs);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(compare(got[i].data, want[i].data, 1e-9, std::max(GetParam().size, 1e-4)), "")
          << GetParam().label() << (differentiated ? ", gradient" : "") << ", output " << i;
  }
}

// Passes that claim to leave the arithmetic alone: every bit is the same without any one of them.
TEST_P(OpCaseTest, SameBitsWithPassesOff) {
  const auto backend = make_cpu_backend(2);
  for (const std::string& dtype : GetParam().dtypes) {
    const OpCase op_case = with_dtype(GetParam(), dtype);
    const Graph graph = case_graph(op_case, op_case.differentiate);
    const RefTensors inputs = make_inputs(graph, op_case);
    const auto want = run_for_bytes(graph, inputs, *backend, forward_only());
    for (const Pass& pass : all_passes()) {
      if (pass.changes_arithmetic) continue;
      PassOptions off = forward_only();
      off.disabled.emplace_back(pass.name);
      EXPECT_TRUE(run_for_bytes(graph, inputs, *backend, off) == want)
          << op_case.label() << " in " << dtype << ": pass " << pass.name << " changes bits";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCaseTest, ::testing::ValuesIn(read_cases(LOCKSTEP_OP_CASES)),
                         [](const ::testing::TestParamInfo<OpCase>& info) {
                           std::string name = info.param.file + "_" + info.param.name;
                           for (char& c : name)
                             if (std::isalnum(c) == 0) c = '_';
                           return name + "_" + std::to_string(info.index);
                         });

// Ops x (f32, bf16): "yes" when a case of the op runs on the backend in that dtype.
void print_matrix(std::ostream& out) {
  std::map<std::string, std::set<std::string>> support;
  const auto backend = make_cpu_backend(1);
  for (const OpCase& base : read_cases(LOCKSTEP_OP_CASES)) {
    for (const std::string& dtype : base.dtypes) {
      const OpCase op_case = with_dtype(base, dtype);
      for (const bool differentiated : {false, true}) {
        if (differentiated && !op_case.differentiate) continue;
        const Graph graph = case_graph(op_case, differentiated);
        for (const Node& node : graph.nodes())
          if (node.op->traits.view || backend->choose(graph, node).kernel != nullptr)
            support[std::string(node.op->name)].insert(dtype);
      }
    }
  }
  out << "# Which ops run where\n\nPrinted by `op_test --matrix` from the cases in `tests/ops/cases`.\n\n"
      << "An op that decomposes runs on every backend that has kernels for its parts.\n\n"
      << "| op | what it does | gradient | decomposes | cpu f32 | cpu bf16 | null |\n"
      << "|---|---|---|---|---|---|---|\n";
  for (const OpDef& op : all_ops().all()) {
    const auto& dtypes = support[std::string(op.name)];
    const auto mark = [&](const char* dtype) { return dtypes.contains(dtype) ? "yes" : "-"; };
    out << "| `" << op.name << "` | " << op.summary << " | "
        << (op.gradient != nullptr ? "yes"
            : op.gradient_is_zero  ? "zero"
                                   : "-")
        << " | " << (op.decompose != nullptr ? "yes" : "-") << " | " << mark("f32") << " | " << mark("bf16")
        << " | yes |\n";
  }
}

TEST(SupportMatrix, ThePageInTheDocsIsCurrent) {
  std::ostringstream current;
  print_matrix(current);
  EXPECT_EQ(read_file(LOCKSTEP_DOCS "/support.md"), current.str())
      << "run: op_test --matrix > docs/support.md";
}

void print_timing(std::ostream& out) {
  const auto backend = make_cpu_backend(2);
  for (const OpCase& op_case : read_cases(LOCKSTEP_OP_CASES)) {
    const Graph graph = case_graph(op_case, op_case.differentiate);
    const RefTensors inputs = make_inputs(graph, op_case);
    const auto start = std::chrono::steady_clock::now();
    run_for_bytes(graph, inputs, *backend, forward_only());
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    out << fmt::format("{:10.1f} us  {}\n", elapsed.count(), op_case.label());
  }
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--matrix") {
    lockstep::testing::print_matrix(std::cout);
    return 0;
  }
  if (mode == "--timing") {
    lockstep::testing::print_timing(std::cout);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
