// What must hold of any bytes in generation_config.json.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Whether they are accepted; throws only where something is wrong with the program.
bool check_generation_config(std::string_view bytes);

}  // namespace lockstep::testing
