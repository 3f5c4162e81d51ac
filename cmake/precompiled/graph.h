// For the folders that work on graphs.
#include "ops/builder.h"
#include "standard.h"
