// CachedDecoder: a model that reads a text once and then one token at a time, with the keys and values of
// what it has read in a cache.
//
// Plans are static: one that reads a token, and one per padded length of texts that are read at once. They
// share an arena. What is computed of a token does not depend on the number of threads; a prompt's length
// decides on how it is padded, and with it on last bits.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "use/generating_model.h"

namespace lockstep {

class CachedDecoder {
 public:
  // For texts of up to `capacity` tokens. Makes the plans for one whose first `prompt` tokens are read at
  // once and throws DoesNotFit where weights, cache and plans take more than `memory` bytes (0: what the
  // machine has available); then loads the weights. Throws UserError for more positions than the model has.
  CachedDecoder(GeneratingModel& model, Backend& backend, int64_t prompt, int64_t capacity, int64_t memory);

  // Forgets what was read before. Logits f32[V] of what follows; valid until the next call.
  std::span<const float> read(std::span<const int32_t> tokens);
  std::span<const float> append(int32_t token);

  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t capacity() const { return capacity_; }
  int64_t planned_bytes() const { return planned_bytes_; }
  int64_t cache_bytes() const { return cache_bytes_; }

  // While on, every step of the plan that reads one token is timed.
  void set_profiling(bool on) { one_token_.executable->set_profiling(on); }
  const Executable* one_token_plan() const { return one_token_.executable.get(); }

  // How many tokens a plan that reads this many at once has room for.
  static int64_t padded(int64_t tokens);

 private:
  // A plan with buffers of its inputs.
  struct Runner {
    int64_t seq = 0;
    int64_t length = 0;  // see HfGraph
    std::unique_ptr<Executable> executable;
    std::map<std::string, std::unique_ptr<Buffer>> inputs;
  };

  int64_t length_of(int64_t tokens) const;
  Plan plan(int64_t seq, int64_t length) const;
  Runner make(Plan plan, int64_t seq, int64_t length);
  void require_fit(const Plan& reading, const Plan& one_token, int64_t memory) const;
  void allocate_cache(const Plan& plan);
  Runner& reader(int64_t seq, int64_t length);
  void fill(Runner& runner, const std::string& name, const void* values);
  std::span<const float> run(Runner& runner);
  std::span<const float> read_all();
  std::span<const float> read_last();

  const GeneratingModel& model_;
  Backend& backend_;
  int64_t capacity_;
  int64_t window_ = 0;  // slots of layers with a window; 0: there are none
  int64_t planned_bytes_ = 0, cache_bytes_ = 0;
  std::shared_ptr<Buffer> arena_;
  std::map<std::string, std::unique_ptr<Buffer>> cache_;
  Runner one_token_;
  std::map<int64_t, Runner> readers_;  // by padded length
  int64_t same_angles_ = 0;            // the cache is of use up to so many tokens
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
};

}  // namespace lockstep
