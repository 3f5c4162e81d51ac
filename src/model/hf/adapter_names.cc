#include "model/hf/adapter_names.h"

#include <array>

namespace lockstep {
namespace {

struct Renaming {
  std::string_view from, to;
};
// In this order: an attention's output ends like an MLP's.
constexpr auto kVit = std::to_array<Renaming>({{"encoder.layer.", "layers."},
                                               {"attention.attention.query", "attention.q_proj"},
                                               {"attention.attention.key", "attention.k_proj"},
                                               {"attention.attention.value", "attention.v_proj"},
                                               {"attention.output.dense", "attention.o_proj"},
                                               {"intermediate.dense", "mlp.fc1"},
                                               {"output.dense", "mlp.fc2"}});

}  // namespace

std::string adapter_name(std::string_view model_type, std::string name) {
  if (model_type != "vit") return name;
  for (const Renaming& renaming : kVit)
    if (const size_t at = name.find(renaming.from); at != std::string::npos)
      name.replace(at, renaming.from.size(), renaming.to);
  return name;
}

}  // namespace lockstep
