// rope: rotary positions, with tables of cosines and sines that all kernels of the same angles share.
#include "backend/cuda/kernels/rope.h"

#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "backend/cuda/kernel_def.h"
#include "ops/rope_frequencies.h"

namespace lockstep::cuda {
namespace {

struct Tables {
  DeviceArray<float> cosine, sine;  // [positions, pairs]
};

std::shared_ptr<const Tables> make_tables(Device& device, const std::vector<float>& frequencies, float factor,
                                          int64_t positions) {
  std::vector<float> cosine, sine;
  cosine.reserve(static_cast<size_t>(positions) * frequencies.size());
  sine.reserve(cosine.capacity());
  for (int64_t position = 0; position < positions; ++position)
    for (const float frequency : frequencies) {
      const auto angle = static_cast<double>(static_cast<float>(position) * frequency);
      cosine.push_back(factor * static_cast<float>(std::cos(angle)));
      sine.push_back(factor * static_cast<float>(std::sin(angle)));
    }
  return std::make_shared<const Tables>(
      Tables{DeviceArray<float>(device, cosine), DeviceArray<float>(device, sine)});
}

std::shared_ptr<const Tables> tables_for(Device& device, const std::vector<float>& frequencies, float factor,
                                         int64_t positions) {
  using Request = std::tuple<Device*, std::vector<float>, float, int64_t>;
  static std::mutex mutex;
  static std::map<Request, std::weak_ptr<const Tables>> made;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Tables>& known = made[{&device, frequencies, factor, positions}];
  std::shared_ptr<const Tables> tables = known.lock();
  if (tables == nullptr) known = tables = make_tables(device, frequencies, factor, positions);
  return tables;
}

class Rope : public NodeKernel {
 public:
  Rope(const Graph& graph, const Node& node, Device& device) {
    const Type& type = in_type(graph, node, 0);
    const Shape& x = type.shape;
    const auto or_else = [&](std::string_view name, int64_t otherwise) {
      const int64_t given = node.attributes.integer(name);
      return given == 0 ? otherwise : given;
    };
    shape_ = {x[0] * x[1],
              x[1],
              x[2],
              or_else("heads", x[2]),
              x[3],
              or_else("rotary_dim", x[3]),
              node.attributes.flag("interleaved"),
              node.attributes.flag("inverse"),
              type.dtype};
    tables_ = tables_for(device, rope_frequencies(node.attributes, shape_.rotary / 2),
                         static_cast<float>(node.attributes.number("factor")), or_else("max_position", x[1]));
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (shape_.tokens == 0) return;
    rope(stream, shape_, args.inputs[0], args.inputs.size() == 2 ? in<int32_t>(args, 1) : nullptr,
         tables_->cosine.data(), tables_->sine.data(), args.outputs[0]);
  }

 private:
  RopeShape shape_;
  std::shared_ptr<const Tables> tables_;
};

}  // namespace

void add_rope(KernelDefs& defs) { defs.push_back({"rope", "cuda.rope", refuse_nothing, make_kernel<Rope>}); }

}  // namespace lockstep::cuda
