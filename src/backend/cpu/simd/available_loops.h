// For tests: the tables of loops that this machine can run, with the name of their instruction set.
#pragma once
#include <string>
#include <vector>

namespace lockstep::cpu {

template <class Loops>
struct NamedLoops {
  std::string isa;
  const Loops& loops;
};

template <class Loops>
std::vector<NamedLoops<Loops>> available_loops(const Loops& avx2, const Loops& avx512) {
  std::vector<NamedLoops<Loops>> available;
  if (__builtin_cpu_supports("avx2")) available.push_back({"avx2", avx2});
  if (__builtin_cpu_supports("avx512bw")) available.push_back({"avx512", avx512});
  return available;
}

}  // namespace lockstep::cpu
