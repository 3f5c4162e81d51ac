#include "comm/mesh.h"

#include "base/error.h"

namespace lockstep {

std::string_view name_of(MeshAxis axis) {
  constexpr std::array<std::string_view, kMeshAxes.size()> kNames = {"tensor", "data", "pipeline"};
  return kNames[static_cast<size_t>(axis)];
}

int MeshShape::degree(MeshAxis axis) const {
  switch (axis) {
    case MeshAxis::kTensor: return tensor;
    case MeshAxis::kData: return data;
    case MeshAxis::kPipeline: break;
  }
  return pipeline;
}

int MeshShape::stride(MeshAxis axis) const {
  int stride = 1;
  for (const MeshAxis faster : kMeshAxes) {
    if (faster == axis) break;
    stride *= degree(faster);
  }
  return stride;
}

RankLine MeshShape::line(MeshAxis axis, int rank) const {
  return {rank - coordinate(axis, rank) * stride(axis), stride(axis), degree(axis)};
}

std::string MeshShape::text() const {
  std::string text = fmt::format("data {}", data);
  if (pipeline > 1) text += fmt::format(" x pipeline {}", pipeline);
  if (tensor > 1) text += fmt::format(" x tensor {}", tensor);
  return text;
}

std::string MeshShape::place(int rank) const {
  std::string text;
  for (const MeshAxis axis : {MeshAxis::kData, MeshAxis::kPipeline, MeshAxis::kTensor})
    if (degree(axis) > 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(axis), coordinate(axis, rank));
  return text;
}

Mesh::Mesh(const MeshShape& shape, int rank, const LeafSplit& data, const Join& join)
    : shape_(shape), rank_(rank) {
  LOCKSTEP_CHECK(rank >= 0 && rank < shape.ranks(), "rank {} of a mesh of {}", rank, shape.ranks());
  for (const MeshAxis axis : kMeshAxes) {
    const int degree = shape.degree(axis);
    if (degree == 1) continue;
    const LeafSplit split = axis == MeshAxis::kData ? data : LeafSplit::one_each(degree);
    groups_[static_cast<size_t>(axis)] = std::make_unique<Group>(
        join(axis, shape.line(axis, rank), coordinate(axis)), split, std::string(name_of(axis)));
  }
  // Ranks that wait for each other along one axis may have left something to move for those of another:
  // without this stages with tensor ranks stood still, each with a message that its peer had not come to
  // take.
  Group* const stages = group(MeshAxis::kPipeline);
  for (const MeshAxis axis : {MeshAxis::kTensor, MeshAxis::kData})
    if (Group* const other = group(axis); other != nullptr && stages != nullptr)
      other->while_waiting([stages] { stages->move_messages(); });
}

}  // namespace lockstep
