#include "observe/tensorboard.h"

#include <chrono>
#include <cmath>

#include "observe/record_fields.h"

namespace lockstep {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double per_second(int64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

}  // namespace

std::vector<Scalar> scalars_of(const StepRecord& record, int64_t tokens_seen) {
  std::vector<Scalar> scalars{{"train/loss", record.loss},
                              {"train/grad_norm", record.grad_norm},
                              {"train/learning_rate", record.lr},
                              {"training/step_time", record.seconds},
                              {"training/samples_per_second", per_second(record.samples, record.seconds)},
                              {"time/compute", record.shares.compute},
                              {"time/comm_exposed", record.shares.exposed_comm},
                              {"time/input", record.shares.input_wait},
                              {"time/optimizer", record.shares.optimizer},
                              {"time/host", record.shares.other}};
  if (record.tokens > 0) {
    scalars.push_back({"training/tokens_per_second", per_second(record.tokens, record.seconds)});
    scalars.push_back({"train/num_input_tokens_seen", static_cast<double>(tokens_seen)});
  }
  if (record.device)
    visit_fields(*record.device, [&](const char* name, const std::optional<double>& value) {
      if (value) scalars.push_back({std::string("device/") + name, *value});
    });
  if (record.action != kApplied) scalars.push_back({"health/" + record.action, 1});
  return scalars;
}

std::vector<Scalar> scalars_of(const EvalRecord& record) {
  std::vector<Scalar> scalars{{"eval/loss", record.loss},
                              {"eval/runtime", record.seconds},
                              {"eval/samples_per_second", per_second(record.samples, record.seconds)}};
  visit_scores(record, [&](const char* name, const std::optional<double>& score) {
    if (score && !std::isnan(*score)) scalars.push_back({std::string("eval/") + name, *score});
  });
  return scalars;
}

std::vector<Scalar> scalars_of(const RunSummary& summary, double seconds) {
  return {
      {"train/train_runtime", seconds},
      {"train/train_samples_per_second", summary.samples_per_second},
      {"train/train_steps_per_second",
       summary.global_batch > 0 ? summary.samples_per_second / static_cast<double>(summary.global_batch) : 0},
      {"train/train_loss", summary.final_loss}};
}

TensorBoardWriter::TensorBoardWriter(const std::string& folder, TensorBoardOptions options)
    : clock_(options.clock ? std::move(options.clock) : unix_seconds),
      tokens_seen_(options.tokens_seen),
      file_(folder, clock_()) {
  // Without a resume everything that an earlier run has left is dropped, its evaluation before step 1 too.
  file_.start_session(options.resume_step ? *options.resume_step + 1 : 0, clock_());
}

void TensorBoardWriter::add(const StepRecord& record) {
  tokens_seen_ += record.tokens;
  file_.add_scalars(record.step, clock_(), scalars_of(record, tokens_seen_));
}

void TensorBoardWriter::add(const EvalRecord& record) {
  file_.add_scalars(record.step, clock_(), scalars_of(record));
}

void TensorBoardWriter::rewind(int64_t step, int64_t tokens_seen) {
  tokens_seen_ = tokens_seen;
  file_.start_session(step + 1, clock_());
}

void TensorBoardWriter::finish(const RunSummary& summary, double seconds) {
  file_.add_scalars(summary.steps, clock_(), scalars_of(summary, seconds));
}

}  // namespace lockstep
