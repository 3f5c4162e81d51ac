// What an adapter calls a parameter. PEFT names modules as transformers does in memory, and for some families
// version 5 does so differently than their files: ViT's `encoder.layer.0.attention.attention.query` is
// `layers.0.attention.q_proj` there.
#pragma once
#include <string>
#include <string_view>

namespace lockstep {

// For a name of a file ("vit.encoder.layer.0...", with or without PEFT's prefix), or a part of it that ends
// at a dot.
std::string adapter_name(std::string_view model_type, std::string name);

}  // namespace lockstep
