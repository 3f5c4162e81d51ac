#include "model/lora.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "model/frozen_params.h"
#include "ops/builder.h"

namespace lockstep {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kRandomInput = "rng";

// What stands on the last layer, which PEFT leaves out of "all-linear".
constexpr auto kHeads = std::to_array<std::string_view>({"lm_head", "embed_out", "score", "classifier", "cls",
                                                         "vocab_projector", "pre_classifier", "qa_outputs"});

bool is_head(std::string_view module) {
  const std::string_view first = module.substr(0, module.find('.'));
  return std::find(kHeads.begin(), kHeads.end(), first) != kHeads.end();
}

bool fits(std::string_view module, std::string_view wanted) {
  if (module == wanted) return true;
  return module.size() > wanted.size() && module.ends_with(wanted) &&
         module[module.size() - wanted.size() - 1] == '.';
}

// A product with a parameter of two axes, and the value that the layer gives: with its bias, where it has
// one.
struct Site {
  LinearLayer layer;
  Value x, result;
};

// The sum of a product and a parameter of this name, where that is all the product is used for.
Value with_bias(const Graph& graph, const std::vector<std::vector<int32_t>>& users, Value product,
                const std::string& bias) {
  const auto& readers = users[static_cast<size_t>(product.id)];
  if (readers.size() != 1) return product;
  const Node& node = graph.nodes()[static_cast<size_t>(readers[0])];
  if (node.op->name != "add") return product;
  Value other = node.inputs[0] == product ? node.inputs[1] : node.inputs[0];
  while (graph.producer(other) >= 0) {
    const Node& from = graph.nodes()[static_cast<size_t>(graph.producer(other))];
    if (from.op->name != "broadcast" && from.op->name != "reshape") return product;
    other = from.inputs[0];
  }
  return graph.name(other) == bias ? node.outputs[0] : product;
}

std::vector<Site> sites_of(const Graph& graph) {
  const auto users = users_of(graph);
  const auto is_looked_up = [&](Value weight) {
    return std::ranges::any_of(users[static_cast<size_t>(weight.id)], [&](int32_t user) {
      return graph.nodes()[static_cast<size_t>(user)].op->name.starts_with("embedding");
    });
  };
  std::vector<Site> sites;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "matmul" || node.attributes.flag("transpose_a")) continue;
    const Value weight = node.inputs[1];
    if (graph.producer(weight) >= 0 || graph.role(weight) != Role::kParam) continue;
    const std::string& name = graph.name(weight);
    const Shape& shape = graph.type(weight).shape;
    if (!name.ends_with(kWeight) || shape.rank() != 2 || is_looked_up(weight)) continue;
    const std::string module = name.substr(0, name.size() - kWeight.size());
    const bool in_out = !node.attributes.flag("transpose_b");
    const Value result = with_bias(graph, users, node.outputs[0], module + ".bias");
    sites.push_back({{module, shape[in_out ? 0 : 1], shape[in_out ? 1 : 0], in_out}, node.inputs[0], result});
  }
  return sites;
}

Value random_input(const Graph& old, Rewriter& rewriter, Builder& b) {
  const Value there = old.find(kRandomInput);
  return there.valid() ? rewriter.mapped(there) : b.input(kRandomInput, {DType::kI64, {2}});
}

int64_t free_key(const Graph& graph) {
  int64_t next = 0;
  for (const Node& node : graph.nodes())
    if (node.op->name == "dropout") next = std::max(next, node.attributes.integer("key") + 1);
  return next;
}

ParamInit start_of_a(const LoraSettings& settings, const LinearLayer& layer) {
  ParamInit start{.name = lora_a_name(layer.module), .decay = true};
  if (settings.start == LoraStart::kGaussian) {
    start.kind = ParamInit::Kind::kNormal;
    start.b = 1.0 / static_cast<double>(settings.rank);
  } else {
    start.kind = ParamInit::Kind::kUniform;
    start.b = 1.0 / std::sqrt(static_cast<double>(layer.in));
    start.a = -start.b;
  }
  return start;
}

}  // namespace

double LoraSettings::scale() const {
  const auto r = static_cast<double>(rank);
  return alpha / (rank_stabilised ? std::sqrt(r) : r);
}

std::string lora_a_name(std::string_view module) {
  return fmt::format("{}{}.lora_A.weight", kAdapterPrefix, module);
}
std::string lora_b_name(std::string_view module) {
  return fmt::format("{}{}.lora_B.weight", kAdapterPrefix, module);
}

bool is_lora_name(std::string_view parameter) {
  return parameter.starts_with(kAdapterPrefix) &&
         (parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight"));
}

std::vector<LinearLayer> linear_layers(const Model& model) {
  std::vector<LinearLayer> layers;
  for (Site& site : sites_of(model.graph)) layers.push_back(std::move(site.layer));
  return layers;
}

std::vector<LinearLayer> adapted_layers(const Model& model, const std::vector<std::string>& modules) {
  const std::vector<LinearLayer> all = linear_layers(model);
  const auto offered = [&] {
    std::set<std::string> last;
    for (const LinearLayer& layer : all) last.insert(layer.module.substr(layer.module.rfind('.') + 1));
    return fmt::format("{}", fmt::join(last, ", "));
  };
  std::vector<LinearLayer> taken;
  for (const LinearLayer& layer : all)
    if (std::ranges::any_of(modules, [&](const std::string& wanted) {
          return wanted == kAllLinear ? !is_head(layer.module) : fits(layer.module, wanted);
        }))
      taken.push_back(layer);
  for (const std::string& wanted : modules)
    if (wanted != kAllLinear &&
        std::ranges::none_of(all, [&](const LinearLayer& layer) { return fits(layer.module, wanted); }))
      throw UserError("'{}' fits no linear layer of this model; there are {}", wanted, offered());
  if (taken.empty()) throw UserError("there is no linear layer to adapt; there are {}", offered());
  return taken;
}

Model with_lora(const Model& model, const LoraSettings& settings, bool training) {
  const Graph& old = model.graph;
  std::set<std::string> wanted;
  for (const LinearLayer& layer : adapted_layers(model, settings.modules)) wanted.insert(layer.module);
  std::map<int32_t, Site> by_result;
  for (Site& site : sites_of(old))
    if (wanted.contains(site.layer.module)) by_result.emplace(site.result.id, std::move(site));

  Rewriter rewriter(old);
  Builder b(rewriter.graph());
  std::map<std::string, std::pair<Value, Value>> matrices;
  std::vector<ParamInit> starts = model.params;
  for (const auto& [id, site] : by_result) {
    const LinearLayer& layer = site.layer;
    if (matrices.contains(layer.module)) continue;
    const Value a = b.param(lora_a_name(layer.module), {settings.rank, layer.in});
    matrices[layer.module] = {a, b.param(lora_b_name(layer.module), {layer.out, settings.rank})};
    starts.push_back(start_of_a(settings, layer));
    starts.push_back({.name = lora_b_name(layer.module), .decay = true});
  }
  const bool drops = training && settings.dropout > 0;
  const Value rng = drops ? random_input(old, rewriter, b) : Value{};
  int64_t key = free_key(old);
  for (const Node& node : old.nodes()) {
    rewriter.copy(node);
    const auto found = by_result.find(node.outputs[0].id);
    if (found == by_result.end()) continue;
    const Site& site = found->second;
    const auto& [a, up] = matrices.at(site.layer.module);
    Value x = rewriter.mapped(site.x);
    if (drops) x = b.op("dropout", {x, rng}, {{"p", settings.dropout}, {"key", key++}});
    const Value narrow = b.scale(b.matmul(x, a, false, true), settings.scale());
    rewriter.map(site.result, b.add(rewriter.mapped(site.result), b.matmul(narrow, up, false, true)));
  }
  return with_graph(model, std::move(rewriter).finish(), starts);
}

}  // namespace lockstep
