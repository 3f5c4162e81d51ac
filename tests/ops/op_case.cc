#include "ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"

namespace lockstep::testing {
namespace {

void read_directive(const std::string& line, OpCase& op_case) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string key;
  words >> key;
  if (key.empty()) return;
  if (key == "range") {
    std::string input;
    double low = 0;
    double high = 0;
    words >> input >> low >> high;
    op_case.ranges[input] = {low, high};
  } else if (key == "tolerance") {
    words >> op_case.tolerance;
  } else if (key == "size") {
    words >> op_case.size;
  } else if (key == "dtypes") {
    op_case.dtypes.clear();
    for (std::string dtype; words >> dtype;) op_case.dtypes.push_back(dtype);
  } else if (key == "no-gradient") {
    op_case.differentiate = false;
  } else {
    throw UserError("{}: unknown directive '{}'", op_case.label(), line);
  }
}

std::vector<OpCase> read_file_cases(const std::filesystem::path& path) {
  std::vector<OpCase> cases;
  std::istringstream lines(read_file(path.string()));
  bool in_graph = false;
  for (std::string line; std::getline(lines, line);) {
    if (in_graph) {
      cases.back().text += line + "\n";
      in_graph = line != "}";
    } else if (line.starts_with("case ")) {
      cases.push_back({});
      cases.back().file = path.stem().string();
      cases.back().name = line.substr(5);
    } else if (line.starts_with("graph ")) {
      cases.back().text = line + "\n";
      in_graph = line.back() != '}';
    } else if (!cases.empty()) {
      read_directive(line, cases.back());
    }
  }
  return cases;
}

}  // namespace

std::vector<OpCase> read_cases(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cases") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<OpCase> cases;
  for (const auto& path : paths)
    for (OpCase& op_case : read_file_cases(path)) cases.push_back(std::move(op_case));
  return cases;
}

OpCase with_dtype(const OpCase& op_case, const std::string& dtype) {
  OpCase result = op_case;
  if (dtype == "f32") return result;
  for (size_t at = 0; (at = result.text.find("f32", at)) != std::string::npos; at += dtype.size()) {
    // A quoted "f32" asks for fp32 results of 16-bit operands and stays.
    const bool part_of_a_word =
        at > 0 && (std::isalnum(result.text[at - 1]) != 0 || result.text[at - 1] == '"');
    if (!part_of_a_word) result.text.replace(at, 3, dtype);
  }
  result.name += " in " + dtype;
  return result;
}

RefTensors make_inputs(const Graph& graph, const OpCase& op_case) {
  RefTensors inputs;
  uint64_t stream = 0;
  for (const GraphInput& input : graph.inputs()) {
    RefTensor tensor(graph.type(input.value));
    const DType dtype = tensor.type.dtype;
    const auto found = op_case.ranges.find(graph.name(input.value));
    const bool floating = is_floating(dtype);
    const auto [low, high] = found != op_case.ranges.end() ? found->second
                             : floating                    ? std::pair{-1.0, 1.0}
                                                           : std::pair{0.0, 2.0};
    const Philox random(2026, stream++);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double x = low + (high - low) * static_cast<double>(random.uniform(static_cast<uint64_t>(i)));
      tensor[i] = floating ? round_to(dtype, x) : std::floor(x);
    }
    inputs[graph.name(input.value)] = std::move(tensor);
  }
  return inputs;
}

}  // namespace lockstep::testing
