// A model: the forward graph of one microbatch.
#pragma once
#include "graph/graph.h"

namespace lockstep {}
