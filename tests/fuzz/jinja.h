// What must hold of any bytes that are given as a chat template.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Renders the template with a conversation, twice alike; spans of what is generated lie in the text. Returns
// whether it could be rendered. Throws for anything but a UserError: that is a bug.
bool check_jinja(std::string_view text);

}  // namespace lockstep::testing
