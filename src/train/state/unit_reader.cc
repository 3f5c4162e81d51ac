#include "train/state/unit_reader.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes

}  // namespace

UnitReader::UnitReader(Backend& backend, std::vector<ParamUnit> units, Find find, SplitTensors::Read read)
    : backend_(backend), units_(std::move(units)), find_(std::move(find)), read_(std::move(read)) {}

void UnitReader::start(int64_t unit, void* into, bool) {
  std::vector<std::byte> piece;
  const ParamUnit& whole = units_[static_cast<size_t>(unit)];
  for (const ParamUnit::Part& part : whole.parts) {
    const StateTensor& tensor = find_(part.name);
    char* const at = static_cast<char*>(into) + whole.offset_bytes(part);
    for (int64_t first = 0; first < tensor.bytes(); first += kPiece) {
      piece.resize(static_cast<size_t>(std::min(kPiece, tensor.bytes() - first)));
      read_(tensor, first, piece);
      backend_.upload(at + first, piece.data(), static_cast<int64_t>(piece.size()));
    }
  }
}

}  // namespace lockstep
