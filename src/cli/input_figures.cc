#include "cli/input_figures.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "cli/job_stream.h"
#include "cli/processor_time.h"
#include "run/run_state.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Two sums over the values of a column, in which every record counts the same wherever it comes. The place of
// a value in its record is its weight, so that exchanged columns are seen; squares, because normalised values
// add up to nothing.
struct ColumnSums {
  double sum = 0, squares = 0;

  // The weighted sum of a record's values, which is added too.
  double add(const Batch& batch, size_t column, int64_t record) {
    const Column& kind = batch.columns()[column];
    const int64_t width = kind.shape.numel();
    double of_record = 0, squares_of_record = 0;  // apart, so that small numbers are not lost in large sums
    for (int64_t e = 0; e < width; ++e) {
      const double value = read_element(kind.dtype, batch.data(column), record * width + e);
      of_record += static_cast<double>(e + 1) * value;
      squares_of_record += value * value;
    }
    sum += of_record;
    squares += squares_of_record;
    return of_record;
  }
};

// The sums of all columns, and one that ties them together: over all records, the product of the columns'
// sums of the record. Labels that moved to other records, and normalised values that moved to other places,
// leave every column's sums as they are and change this one.
struct EpochSums {
  std::vector<ColumnSums> columns;
  double tie = 0;

  void add(const Batch& batch, int64_t records) {
    for (int64_t record = 0; record < records; ++record) {
      double product = 1;
      for (size_t c = 0; c < columns.size(); ++c) product *= columns[c].add(batch, c, record);
      tie += product;
    }
  }
};

// All columns of a batch, one after another.
std::string content(const Batch& batch) {
  std::string bytes;
  for (size_t c = 0; c < batch.columns().size(); ++c)
    bytes.append(static_cast<const char*>(batch.data(c)), static_cast<size_t>(batch.bytes(c)));
  return bytes;
}

// What a checkpoint holds to go on at this place: all that a run knows beside its tensors, and the identity
// of the data.
size_t state_bytes(int64_t step, const Source& source) {
  RunState state;
  state.step = step;
  const json held = {{"state", to_json(state, step)}, {"data.train", source.fingerprint()}};
  return held.dump().size();
}

json check(const JobSpec& spec) {
  auto stream = std::make_unique<JobStream>(spec);
  const int64_t records = stream->source().size(), each = spec.train.microbatch;
  const int64_t batches = (records + each - 1) / each, middle = batches / 2;
  EpochSums sums{std::vector<ColumnSums>(stream->source().columns().size())};
  std::string kept;
  for (int64_t number = 0; number < batches; ++number) {
    const Batch& batch = stream->get(number);
    sums.add(batch, std::min(each, records - number * each));
    if (number == middle) kept = content(batch);
  }
  json columns;
  for (size_t c = 0; c < sums.columns.size(); ++c)
    columns[stream->source().columns()[c].name] = {{"sum", sums.columns[c].sum},
                                                   {"squares", sums.columns[c].squares}};
  const size_t bytes = state_bytes(middle, stream->source());
  stream.reset();

  const Clock::time_point start = Clock::now();
  JobStream resumed(spec);
  const Batch& first = resumed.get(middle);
  const double seconds = since(start);
  return {{"gate", {{"records", records}, {"columns", columns}, {"tie", sums.tie}}},
          {"resume", {{"ms", 1e3 * seconds}, {"bytes", bytes}, {"same", content(first) == kept}}}};
}

}  // namespace

json input_figures(const JobSpec& spec, const FiguresOptions& options) {
  const int64_t each = spec.train.microbatch;
  const Clock::time_point start = Clock::now();
  JobStream stream(spec);
  const double opened = since(start);
  stream.get(0);
  json figures = {{"records", stream.source().size()},
                  {"batch", each},
                  {"open_ms", 1e3 * opened},
                  {"first_batch_ms", 1e3 * since(start)}};

  int64_t number = 1;
  // Whole epochs: where blocks are mixed, an epoch's beginning reads more than its end.
  const int64_t epoch = (stream.source().size() + each - 1) / each;
  const auto read_for = [&](double seconds) {
    const Clock::time_point begin = Clock::now();
    for (int64_t read = 0; since(begin) < seconds || read % epoch != 0; ++read) stream.get(number++);
    return since(begin);
  };
  if (options.warm_up > 0) read_for(options.warm_up);
  const int64_t first = number;
  const double processor = processor_seconds();
  const int64_t bytes = stream.report().stages.bytes;
  const double seconds = read_for(options.seconds);
  figures["window"] = {{"seconds", seconds},
                       {"records", (number - first) * each},
                       {"cpu_s", processor_seconds() - processor},
                       {"bytes", stream.report().stages.bytes - bytes}};
  figures["readers"] = stream.report().readers;
  if (options.check) figures.update(check(spec));
  return figures;
}

}  // namespace lockstep
