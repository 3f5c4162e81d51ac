// BatchRunner: a model made ready to answer batches of one size. What it computes of a record does not depend
// on the others of its batch; a batch that is not full is filled up with its first record.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/source/source.h"
#include "model/model.h"
#include "runtime/compile.h"

namespace lockstep {

class BatchRunner {
 public:
  using AddressOf = std::function<void*(std::string_view name)>;

  // `model` is an evaluation graph with any outputs. Weights are read where `address_of` says.
  BatchRunner(const Model& model, Backend& backend, const PassOptions& passes, const AddressOf& address_of);

  int64_t batch() const { return batch_; }
  // Rows [first, first + count) of the columns, whose values lie at `inputs`. Throws UserError where a column
  // is not what the model takes.
  void run(const std::vector<Column>& columns, std::span<const void* const> inputs, int64_t first,
           int64_t count);
  const Executable& computed() const { return *executable_; }

 private:
  struct Input {
    std::string name;
    Type type;
    std::unique_ptr<Buffer> buffer;
  };

  Backend& backend_;
  int64_t batch_;
  std::unique_ptr<Executable> executable_;
  std::vector<Input> inputs_;
};

}  // namespace lockstep
