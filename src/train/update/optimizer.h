// Optimizers by name: what each keeps beside the parameters, and the node that updates the flat buffers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective.h"
#include "model/model.h"
#include "ops/builder.h"
#include "runtime/flat.h"

namespace lockstep {

struct OptimizerSettings {
  std::string name = "adamw";  // sgd, adam, adamw, lamb, lion, adafactor
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double momentum = 0.9;   // sgd
  bool nesterov = false;   // sgd
  double clip_norm = 1.0;  // 0: no clipping
  // What is kept beside the parameters; bf16 only where these are bf16 too, and rounded stochastically then.
  DType moments = DType::kF32;
  // Its flat state, and the averages, lie in pinned memory of the host, where kernels of the device reach
  // them; changes no bit.
  bool offloaded = false;
};

// A flat buffer of optimizer state: an input of the update graph.
struct StateBuffer {
  std::string name;
  int64_t numel = 0;
  DType dtype = DType::kF32;

  int64_t bytes() const { return numel * size_of(dtype); }
};

// Throws UserError for an unknown name, or one that cannot update parameters of the layout's type.
std::vector<StateBuffer> optimizer_state(const FlatLayout& layout, const OptimizerSettings& settings);

// Where in those buffers the state of one parameter lies.
struct StatePart {
  std::string buffer;
  std::string param;
  Shape shape;
  int64_t offset = 0;  // in elements
  DType dtype = DType::kF32;
};
std::vector<StatePart> optimizer_parts(const FlatLayout& layout, const OptimizerSettings& settings);

// Whether an element's update depends on no other element, so that parts can be updated apart.
bool updates_elements(const OptimizerSettings& settings);

// Whether untouched rows of a table can be left behind and caught up later.
bool supports_row_updates(const OptimizerSettings& settings);

// The input i64[2], (seed, step), of updates that round what they store.
inline constexpr std::string_view kUpdateRounding = "update_rounding";

// Adds the state inputs and the update of all of `p` to the graph. `p` are the elements in `part` of the
// layout: all of them, unless updates_elements. Parameters in bf16 are rounded stochastically, and the graph
// takes kUpdateRounding.
void emit_optimizer(Graph& graph, Value p, Value g, Value scale, Value lr, Value step,
                    const FlatLayout& layout, Slice part, const std::vector<ParamInit>& params,
                    const OptimizerSettings& settings);

// The attributes that the AdamW ops share.
Attributes adamw_attributes(const OptimizerSettings& settings, bool decay);
const ParamInit& init_of(const std::vector<ParamInit>& params, const std::string& name);

}  // namespace lockstep
