// For tests.
#include <gtest/gtest.h>

#include "graph.h"
