#include "use/predict.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "base/available_memory.h"
#include "base/error.h"
#include "data/bytes/files.h"
#include "data/open/open_kept.h"
#include "data/shards/formats.h"
#include "prepare/job_data.h"
#include "prepare/job_model.h"
#include "prepare/job_options.h"
#include "train/checkpoint/saved_weights.h"
#include "train/evaluate/evaluate.h"
#include "use/answer.h"
#include "use/batch_runner.h"
#include "use/ordered_output.h"
#include "use/prediction_file.h"
#include "use/use_data.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Records of a table that are computed at once: what they take between two products stays in a core's cache.
constexpr int64_t kTableBatch = 512;
// Records that a lane reads at once: of a table, and of rows of tokens or images.
constexpr int64_t kTableChunk = 8192;
constexpr int64_t kOtherChunk = 16;
// Chunks that may wait to be written, for each lane.
constexpr int64_t kWaiting = 4;

// The first failure in the order of the records, whichever lane met one first.
class FirstFailure {
 public:
  void note(int64_t chunk, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (chunk >= chunk_.load()) return;
    chunk_ = chunk;
    error_ = std::move(error);
  }
  // Whether a chunk comes before it, and is still worth making.
  bool comes_after(int64_t chunk) const { return chunk < chunk_.load(); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::atomic<int64_t> chunk_{INT64_MAX};
  std::exception_ptr error_;
};

bool writes_lines(std::string_view format) { return format == "csv" || format == "jsonl"; }

// Everything that the lanes share.
class Prediction {
 public:
  Prediction(const TrainedRun& run, const PredictOptions& options)
      : spec_(run.spec),
        labels_(run.labels),
        host_(host_share(std::nullopt)),
        out_format_(format_to_write(options.out, options.out_format)) {
    spec_.strategy.threads = options.threads.value_or(host_.processors);
    choose_format(options.files, options.format, spec_);
    data_ = job_data_options(spec_, host_);
    records_ = open_to_predict(data_, run.constants, options.files, {options.columns, out_format_});
    backend_ = make_backend(job_device(spec_, host_));
    choose_batch(options);
    answer_.emplace(evaluation(),
                    AnswerOptions{class_names(run, data_), options.each_class, options.threshold});
    fields_ = records_.reader->own();
    for (const BlockField& field : answer_->fields()) {
      if (std::any_of(fields_.begin(), fields_.end(),
                      [&](const auto& own) { return own.name == field.name; }))
        throw UserError(
            "the records have a column '{}', and so has the answer; choose the columns to write with "
            "--columns",
            field.name);
      fields_.push_back(field);
    }
    weights_.emplace(*run.checkpoint, run.base_weights(), evaluation().graph, *backend_);
    plan_lanes(options);
  }

  PredictReport write(PredictionFile& file) {
    const auto start = Clock::now();
    OrderedOutput output([&](std::string_view bytes) { file.write(bytes); }, kWaiting * lanes_);
    begin_file(file);
    std::vector<std::thread> threads;
    for (int lane = 1; lane < lanes_; ++lane) threads.emplace_back([&] { work(output); });
    work(output);
    for (std::thread& thread : threads) thread.join();
    failure_.rethrow();
    std::string rest;
    writer_->finish(rest);
    file.write(rest);
    file.finish();
    PredictReport report;
    report.records = records_.reader->size();
    report.bytes = file.size();
    report.lanes = lanes_;
    report.seconds = seconds_since(start);
    report.format = name_of(*spec_.data.train.format);
    report.out_format = out_format_;
    report.left_out = records_.left_out;
    return report;
  }

 private:
  Model evaluation() const {
    return build_job_evaluation(spec_, input_sizes(records_.reader->columns(), labels_), batch_);
  }

  void choose_batch(const PredictOptions& options) {
    const bool table = spec_.model.family->records == Records::kTable;
    batch_ = options.batch.value_or(table ? kTableBatch : spec_.train.microbatch);
    batch_ = Answer::records_at_once(evaluation().task).value_or(batch_);
    const int64_t wanted = table ? kTableChunk : kOtherChunk;
    chunk_ = std::max(batch_, wanted / batch_ * batch_);
    chunks_ = (records_.reader->size() + chunk_ - 1) / chunk_;
  }

  // On the host every lane computes for itself, as far as there is memory for what it takes.
  void plan_lanes(const PredictOptions& options) {
    lanes_ = static_cast<int>(options.threads.value_or(host_.processors));
    lanes_ = static_cast<int>(std::clamp<int64_t>(chunks_, 1, lanes_));
    if (!on_host()) return;
    const auto probe = make_cpu_backend(1);
    const int64_t each =
        evaluation_bytes(plan_evaluation(Answer::only_answer(evaluation()), *probe, job_passes(spec_)));
    const int64_t available = available_memory_bytes();
    if (available > 0)
      lanes_ = static_cast<int>(std::clamp<int64_t>(available / 2 / std::max<int64_t>(each, 1), 1, lanes_));
  }

  bool on_host() const { return backend_->memory() == MemoryKind::kHost; }

  // Text formats are made by the lanes; what stands before the first record is written once.
  void begin_file(PredictionFile& file) {
    writer_ = make_table_writer(out_format_, fields_);
    if (!writes_lines(out_format_)) return;
    std::string header;
    writer_->finish(header);
    file.write(header);
  }

  std::unique_ptr<TableWriter> lane_writer() const {
    if (!writes_lines(out_format_)) return nullptr;
    auto writer = make_table_writer(out_format_, fields_);
    std::string header;
    writer->finish(header);  // it stands in the file already
    return writer;
  }

  void work(OrderedOutput& output) {
    int64_t chunk = 0;
    try {
      std::unique_ptr<Backend> own;
      std::optional<BatchRunner> runner;
      RecordScratch scratch;
      const auto writer = lane_writer();
      for (chunk = next_++; chunk < chunks_ && failure_.comes_after(chunk); chunk = next_++) {
        records_.reader->read(chunk * chunk_, std::min(chunk_, records_.reader->size() - chunk * chunk_),
                              scratch);
        if (!runner && on_host()) {
          own = make_cpu_backend(1);
          runner.emplace(answer_model(), *own, job_passes(spec_), addresses());
        }
        if (runner)
          compute(*runner, *own, scratch);
        else
          compute_on_device(scratch);
        if (writer) {
          std::string bytes;
          writer->append(scratch.own, bytes);
          output.put(chunk, std::move(bytes));
        } else {
          output.make_in_turn(chunk, [&](std::string& bytes) { writer_->append(scratch.own, bytes); });
        }
      }
    } catch (...) {
      failure_.note(chunk, std::current_exception());
      // Lanes that make earlier chunks go on, for one of these may fail as well; nothing more is written.
      output.stop();
    }
  }

  Model answer_model() const { return Answer::only_answer(evaluation()); }
  BatchRunner::AddressOf addresses() const {
    return [this](std::string_view name) { return weights_->address(name); };
  }

  // The device is used by one lane at a time; the others read and write meanwhile.
  void compute_on_device(RecordScratch& scratch) {
    const std::lock_guard lock(device_mutex_);
    if (!device_) device_.emplace(answer_model(), *backend_, job_passes(spec_), addresses());
    compute(*device_, *backend_, scratch);
  }

  // Adds the answer to the records' own columns.
  void compute(BatchRunner& runner, Backend& backend, RecordScratch& scratch) const {
    std::vector<BlockColumn> columns;
    for (const BlockField& field : answer_->fields()) columns.push_back(make_column(field));
    for (int64_t first = 0; first < scratch.records; first += batch_) {
      const int64_t count = std::min(batch_, scratch.records - first);
      runner.run(records_.reader->columns(), scratch.inputs, first, count);
      answer_->append(backend, runner.computed(), count, columns);
    }
    for (BlockColumn& column : columns) scratch.own.columns.push_back(std::move(column));
  }

  JobSpec spec_;
  std::optional<LabelEncoding> labels_;
  HostShare host_;
  std::string out_format_;
  DataOptions data_;
  RecordsToPredict records_;
  std::unique_ptr<Backend> backend_;
  int64_t batch_ = 1, chunk_ = 1, chunks_ = 0;
  std::optional<Answer> answer_;
  std::vector<BlockField> fields_;
  std::optional<SavedWeights> weights_;
  int lanes_ = 1;
  std::unique_ptr<TableWriter> writer_;
  std::mutex device_mutex_;
  std::optional<BatchRunner> device_;
  std::atomic<int64_t> next_{0};
  FirstFailure failure_;
};

}  // namespace

PredictReport predict(const TrainedRun& run, const PredictOptions& options) {
  const auto start = Clock::now();
  Prediction prediction(run, options);
  std::vector<std::string> inputs;
  for (const std::string& pattern : options.files)
    for (std::string& path : match_files(pattern)) inputs.push_back(std::move(path));
  PredictionFile file(options.out, inputs);
  const double opened = seconds_since(start);
  if (options.began) options.began();
  PredictReport report = prediction.write(file);
  report.open_seconds = opened;
  return report;
}

}  // namespace lockstep
