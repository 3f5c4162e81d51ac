#include "backend/cpu/tile_program.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

// 8 kB per tile: operands, a few intermediates and results fit the first cache together.
constexpr int64_t kTileElements = 2048;

std::vector<Shape> shapes_of(const std::vector<Type>& types) {
  std::vector<Shape> shapes;
  for (const Type& type : types) shapes.push_back(type.shape);
  return shapes;
}

void* element(void* data, DType dtype, int64_t index) {
  return static_cast<char*>(data) + index * size_of(dtype);
}

void load(const PointwiseLoops& loops, DType dtype, float* out, const void* in, int64_t n) {
  switch (dtype) {
    case DType::kF32: std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::kBF16: loops.from_bf16(out, static_cast<const uint16_t*>(in), n); return;
    case DType::kF16: loops.from_f16(out, static_cast<const uint16_t*>(in), n); return;
    case DType::kI32: loops.from_i32(out, static_cast<const int32_t*>(in), n); return;
    case DType::kU8:
    case DType::kBool: loops.from_u8(out, static_cast<const uint8_t*>(in), n); return;
    case DType::kI64: break;
  }
  throw InternalError("a tile program cannot read {}", name_of(dtype));
}

void store(const PointwiseLoops& loops, DType dtype, void* out, const float* in, int64_t n) {
  switch (dtype) {
    case DType::kF32: std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::kBF16: loops.to_bf16(static_cast<uint16_t*>(out), in, n); return;
    case DType::kF16: loops.to_f16(static_cast<uint16_t*>(out), in, n); return;
    case DType::kI32: loops.to_i32(static_cast<int32_t*>(out), in, n); return;
    case DType::kU8: loops.to_u8(static_cast<uint8_t*>(out), in, n); return;
    case DType::kBool: loops.to_bool(static_cast<uint8_t*>(out), in, n); return;
    case DType::kI64: break;
  }
  throw InternalError("a tile program cannot write {}", name_of(dtype));
}

}  // namespace

TileProgram::TileProgram(TileCode code)
    : code_(std::move(code)), layout_(code_.shape, shapes_of(code_.operands), kTileElements) {
  place_operands();
  make_steps();
  slot_elements_ =
      code_.summed >= 0 ? kTileElements : ceil_div(std::max<int64_t>(layout_.largest_tile(), 1), 16) * 16;
}

void TileProgram::place_operands() {
  const bool several_rows = layout_.rows_per_tile() > 1;
  for (size_t i = 0; i < code_.operands.size(); ++i) {
    Operand operand{code_.operands[i], layout_.access(i)};
    switch (operand.access) {
      case Access::kScalar: operand.scalar = operand.constant = true; break;
      case Access::kColumn: operand.scalar = !several_rows; break;
      case Access::kStrided: operand.scalar = !several_rows && layout_.column_stride(i) == 0; break;
      case Access::kRow: operand.constant = layout_.rows_per_tile() > 0; break;
      case Access::kFull: break;
    }
    const bool in_place =
        operand.type.dtype == DType::kF32 && (operand.access == Access::kFull || !several_rows);
    if (!operand.scalar && !in_place) operand.slot = slots_++;
    if (operand.slot < 0 && !operand.scalar) operand.constant = false;
    operands_.push_back(operand);
  }
}

void TileProgram::make_steps() {
  std::vector<int> last_read(code_.instructions.size(), -1);
  for (size_t i = 0; i < code_.instructions.size(); ++i) {
    const TileInstruction& instruction = code_.instructions[i];
    Step step{.function = instruction.function, .dtype = instruction.dtype};
    for (int k = 0; k < arity(instruction.function); ++k) {
      const TileSource& source = instruction.sources[static_cast<size_t>(k)];
      Argument& argument = step.arguments[static_cast<size_t>(k)];
      argument = {source.kind, source.index, source.kind == TileSource::Kind::kNumber, source.number};
      if (source.kind == TileSource::Kind::kOperand) {
        Operand& operand = operands_[static_cast<size_t>(source.index)];
        argument.scalar = operand.scalar;
        operand.last_read = static_cast<int>(i);
      }
      if (source.kind == TileSource::Kind::kInstruction)
        last_read[static_cast<size_t>(source.index)] = static_cast<int>(i);
    }
    steps_.push_back(step);
  }
  for (size_t r = 0; r < code_.results.size(); ++r) {
    const auto i = static_cast<size_t>(code_.results[r]);
    LOCKSTEP_CHECK(steps_[i].result < 0, "instruction {} is stored twice", i);
    steps_[i].result = static_cast<int>(r);
  }
  assign_slots(last_read);
  add_extra_slots();
}

// Linear scan: a slot is free again after the last reader of its value. A result keeps its slot to the end,
// since its store may have to wait for a reader of the memory that it goes to.
void TileProgram::assign_slots(const std::vector<int>& last_read) {
  std::vector<int> free;
  std::vector<int> until;  // per step: when its slot is given back
  const int end = static_cast<int>(steps_.size());
  for (int i = 0; i < end; ++i) {
    for (int j = 0; j < i; ++j)
      if (until[static_cast<size_t>(j)] == i) free.push_back(steps_[static_cast<size_t>(j)].slot);
    Step& step = steps_[static_cast<size_t>(i)];
    step.read_later = last_read[static_cast<size_t>(i)] > i || i == code_.summed;
    for (const Operand& operand : operands_)
      step.may_wait = step.may_wait || (may_share(operand, step) && operand.last_read > i);
    const bool in_memory = step.result >= 0 && step.dtype == DType::kF32 && !step.may_wait;
    if (in_memory) {
      until.push_back(-1);
      continue;
    }
    until.push_back(
        step.result >= 0 || i == code_.summed ? end : std::max(last_read[static_cast<size_t>(i)], i + 1));
    if (free.empty()) free.push_back(slots_++);
    step.slot = free.back();
    free.pop_back();
  }
}

bool TileProgram::may_share(const Operand& operand, const Step& step) const {
  return step.result >= 0 && operand.type.shape == code_.shape &&
         size_of(operand.type.dtype) == size_of(step.dtype);
}

void TileProgram::add_extra_slots() {
  std::array<int, 3> fillers{-1, -1, -1};
  for (Step& step : steps_) {
    const int arguments = arity(step.function);
    const bool has_loop = arguments == 2 && step.arguments[0].scalar != step.arguments[1].scalar;
    for (size_t k = 0; k < static_cast<size_t>(arguments); ++k) {
      if (!step.arguments[k].scalar || has_loop) continue;
      if (fillers[k] < 0) fillers[k] = slots_++;
      step.filled[k] = fillers[k];
    }
    const bool rounds_in_scratch = step.dtype != DType::kF32 && (step.result < 0 || step.may_wait);
    if (rounds_in_scratch && staging_ < 0) staging_ = slots_++;
  }
  if (code_.summed >= 0) gathered_ = slots_++;
}

// One execution: addresses are known, every thread has its scratch tiles.
class TileProgram::Run {
 public:
  Run(const TileProgram& program, const CpuContext& context, const KernelArgs& args)
      : program_(program), layout_(program.layout_), loops_(context.simd.pointwise), args_(args) {
    // A result may overwrite an operand only once nothing reads that operand any more; until then its store
    // waits.
    for (int i = 0; i < static_cast<int>(program_.steps_.size()); ++i) {
      const Step& step = program_.steps_[static_cast<size_t>(i)];
      if (!step.may_wait) continue;
      for (size_t k = 0; k < program_.operands_.size(); ++k)
        if (args_.inputs[k] == args_.outputs[static_cast<size_t>(step.result)] &&
            program_.operands_[k].last_read > i)
          deferred_ |= uint64_t{1} << step.result;
    }
  }

  float* scratch(int thread) const {
    return static_cast<float*>(args_.workspace) + thread * program_.thread_scratch();
  }

  // What is the same in every tile: once per thread.
  void begin(float* scratch) const {
    const Tile widest{0, std::max<int64_t>(layout_.rows_per_tile(), 1), 0, layout_.columns()};
    for (size_t k = 0; k < program_.operands_.size(); ++k)
      if (program_.operands_[k].constant) prepare(k, widest, scratch);
  }

  void evaluate(const Tile& tile, float* scratch) const {
    for (size_t k = 0; k < program_.operands_.size(); ++k)
      if (!program_.operands_[k].constant) prepare(k, tile, scratch);
    for (const Step& step : program_.steps_) execute(step, tile, scratch);
    if (deferred_ != 0) store_deferred(tile, scratch);
  }

  // f32 results are computed where they are stored.
  float* value_of(const Step& step, const Tile& tile, float* scratch) const {
    if (!in_memory(step)) return slot(scratch, step.slot);
    return static_cast<float*>(args_.outputs[static_cast<size_t>(step.result)]) + layout_.offset(tile);
  }
  bool in_memory(const Step& step) const {
    return step.result >= 0 && step.dtype == DType::kF32 && !is_deferred(step.result);
  }
  float* slot(float* scratch, int index) const { return scratch + index * program_.slot_elements_; }

 private:
  float* staging(float* scratch) const { return slot(scratch, program_.staging_); }
  bool is_deferred(int result) const { return ((deferred_ >> result) & 1) != 0; }

  // Gathers an operand's elements for a tile in its slot.
  void prepare(size_t k, const Tile& tile, float* scratch) const {
    const Operand& operand = program_.operands_[k];
    if (operand.slot < 0) return;
    const DType dtype = operand.type.dtype;
    float* out = slot(scratch, operand.slot);
    if (operand.access == Access::kFull) {
      load(loops_, dtype, out, element(args_.inputs[k], dtype, layout_.offset(tile)), tile.elements());
      return;
    }
    const int64_t stride = layout_.column_stride(k);
    for (int64_t r = 0; r < tile.rows; ++r, out += tile.columns) {
      const int64_t at = layout_.row_offset(k, tile.row + r) + tile.column * stride;
      if (stride == 0)
        loops_.fill(out, read_scalar(k, at), tile.columns);
      else if (operand.access == Access::kRow && r > 0)
        std::memcpy(out, out - tile.columns, static_cast<size_t>(tile.columns) * sizeof(float));
      else
        load(loops_, dtype, out, element(args_.inputs[k], dtype, at), tile.columns);
    }
  }

  float read_scalar(size_t k, int64_t index) const {
    const DType dtype = program_.operands_[k].type.dtype;
    if (dtype == DType::kF32) return static_cast<const float*>(args_.inputs[k])[index];
    return static_cast<float>(read_element(dtype, args_.inputs[k], index));
  }

  float scalar(const Argument& argument, const Tile& tile) const {
    if (argument.kind == TileSource::Kind::kNumber) return argument.number;
    const auto k = static_cast<size_t>(argument.index);
    return read_scalar(k, layout_.row_offset(k, tile.row));
  }

  const float* tile_of(const Argument& argument, const Tile& tile, float* scratch) const {
    if (argument.kind == TileSource::Kind::kInstruction) {
      const Step& step = program_.steps_[static_cast<size_t>(argument.index)];
      return value_of(step, tile, scratch);
    }
    const auto k = static_cast<size_t>(argument.index);
    const Operand& operand = program_.operands_[k];
    if (operand.slot >= 0) return slot(scratch, operand.slot) + (operand.constant ? tile.column : 0);
    const auto* data = static_cast<const float*>(args_.inputs[k]);
    if (operand.access == Access::kFull) return data + layout_.offset(tile);
    return data + layout_.row_offset(k, tile.row) + tile.column;
  }

  void execute(const Step& step, const Tile& tile, float* scratch) const {
    const int64_t n = tile.elements();
    const auto f = static_cast<size_t>(step.function);
    float* out = value_of(step, tile, scratch);
    const auto& [a, b, c] = step.arguments;
    const int arguments = arity(step.function);
    if (arguments == 2 && a.scalar != b.scalar) {
      if (b.scalar)
        loops_.tile_scalar[f](out, tile_of(a, tile, scratch), scalar(b, tile), n);
      else
        loops_.scalar_tile[f](out, scalar(a, tile), tile_of(b, tile, scratch), n);
    } else {
      std::array<const float*, 3> tiles{};
      for (int k = 0; k < arguments; ++k) {
        const Argument& argument = step.arguments[static_cast<size_t>(k)];
        if (!argument.scalar) {
          tiles[static_cast<size_t>(k)] = tile_of(argument, tile, scratch);
          continue;
        }
        float* filled = slot(scratch, step.filled[static_cast<size_t>(k)]);
        loops_.fill(filled, scalar(argument, tile), n);
        tiles[static_cast<size_t>(k)] = filled;
      }
      loops_.tile[f](out, tiles[0], tiles[1], tiles[2], n);
    }
    if (step.dtype != DType::kF32) round(step, tile, out, scratch);
  }

  void round(const Step& step, const Tile& tile, float* value, float* scratch) const {
    const bool stored = step.result >= 0 && !is_deferred(step.result);
    void* out =
        stored ? element(args_.outputs[static_cast<size_t>(step.result)], step.dtype, layout_.offset(tile))
               : staging(scratch);
    store(loops_, step.dtype, out, value, tile.elements());
    if (step.read_later || !stored) load(loops_, step.dtype, value, out, tile.elements());
  }

  void store_deferred(const Tile& tile, float* scratch) const {
    for (const Step& step : program_.steps_) {
      if (step.result < 0 || !is_deferred(step.result)) continue;
      store(loops_, step.dtype,
            element(args_.outputs[static_cast<size_t>(step.result)], step.dtype, layout_.offset(tile)),
            slot(scratch, step.slot), tile.elements());
    }
  }

  const TileProgram& program_;
  const TileLayout& layout_;
  const PointwiseLoops& loops_;
  const KernelArgs& args_;
  uint64_t deferred_ = 0;
};

int64_t TileProgram::workspace_bytes(const CpuContext& context) const {
  return context.pool.threads() * thread_scratch() * static_cast<int64_t>(sizeof(float));
}

void TileProgram::run(const CpuContext& context, const KernelArgs& args) const {
  const Run run(*this, context, args);
  const int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(layout_.largest_tile(), 1));
  context.pool.run_indexed(ceil_div(layout_.tiles(), grain), [&](int64_t task, int thread) {
    float* scratch = run.scratch(thread);
    run.begin(scratch);
    const int64_t end = std::min((task + 1) * grain, layout_.tiles());
    for (int64_t index = task * grain; index < end; ++index) run.evaluate(layout_.tile(index), scratch);
  });
}

class TileProgram::Terms : public TermSource {
 public:
  Terms(const TileProgram& program, const CpuContext& context, const KernelArgs& args)
      : program_(program),
        step_(program.steps_[static_cast<size_t>(program.code_.summed)]),
        args_(args),
        run_(program, context, args_) {
    for (int thread = 0; thread < context.pool.threads(); ++thread) run_.begin(run_.scratch(thread));
  }

  // A range may begin and end anywhere in a row: it is cut where a tile would change its form.
  const float* terms(int64_t begin, int64_t count, int thread) const override {
    float* scratch = run_.scratch(thread);
    float* gathered = run_.slot(scratch, program_.gathered_);
    const float* first = nullptr;
    for (int64_t done = 0; done < count;) {
      const Tile tile = next_tile(begin + done, count - done);
      run_.evaluate(tile, scratch);
      const float* values = run_.value_of(step_, tile, scratch);
      if (done == 0) first = values;
      if (tile.elements() == count || run_.in_memory(step_)) {
        done += tile.elements();
        continue;
      }
      std::memcpy(gathered + done, values, static_cast<size_t>(tile.elements()) * sizeof(float));
      first = gathered;
      done += tile.elements();
    }
    return first;
  }

 private:
  Tile next_tile(int64_t begin, int64_t count) const {
    const TileLayout& layout = program_.layout_;
    const int64_t row = begin / layout.columns();
    const int64_t column = begin % layout.columns();
    const int64_t rows = std::min(count / layout.columns(), layout.rows_per_tile());
    if (column == 0 && rows > 1) return {row, rows, 0, layout.columns()};
    return {row, 1, column, std::min({count, layout.columns() - column, kTileElements})};
  }

  const TileProgram& program_;
  const Step& step_;
  KernelArgs args_;
  Run run_;
};

std::unique_ptr<TermSource> TileProgram::terms(const CpuContext& context, const KernelArgs& args) const {
  return std::make_unique<Terms>(*this, context, args);
}

}  // namespace lockstep::cpu
