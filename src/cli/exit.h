// How a subcommand ends the program with a code of its own after it has said why.
#pragma once

namespace lockstep {

struct Exit {
  int code = 0;
};

}  // namespace lockstep
