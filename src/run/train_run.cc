#include "run/train_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "comm/peer_error.h"
#include "observe/summary.h"
#include "prepare/announce.h"
#include "prepare/fit.h"
#include "prepare/job_data.h"
#include "prepare/job_evaluation.h"
#include "prepare/job_options.h"
#include "prepare/warnings.h"
#include "run/comm_report.h"
#include "run/process.h"
#include "run/resume.h"
#include "run/settle_codec.h"
#include "run/share_state.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

enum ExitCode : uint8_t { kDone = 0, kFailed = 1, kDiverged = 6, kPreempted = 75, kInterrupted = 130 };

// Between two words to the workers who wait for a checkpoint.
constexpr std::chrono::milliseconds kLookAgain{100};
// For an errand of the thread that writes a checkpoint: of pieces of what is split there comes one as soon as
// the one before is written.
constexpr std::chrono::milliseconds kNextErrand{5};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool due(const std::optional<int64_t>& every, int64_t step) { return every && step % *every == 0; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

JobPlan fitting_plan(const JobParts& parts, Backend& backend, const TrainOptions& options) {
  JobPlan plan = plan_job(parts.spec, parts.resolved, parts.model, parts.inputs, backend, options.host,
                          options.mesh_rank);
  require_fit(parts.spec, parts.resolved, plan, parts.inputs, backend, parts.host);
  return plan;
}

// Workers plan for what each of them holds; all end with what the first says for whom that is too much.
TrainStep fitting_step(const JobParts& parts, Backend& backend, const Workers& workers,
                       const MeshGroups& groups, PhaseTimes& times) {
  const TrainOptions options = options_in(groups, backend, parts.options);
  std::optional<JobPlan> plan;
  std::string refusal;
  try {
    plan = times.timed("plan", [&] { return fitting_plan(parts, backend, options); });
  } catch (const DoesNotFit& error) {
    refusal = error.what();
  }
  const std::string first = workers.first_word(refusal, "whether the job fits");
  if (!first.empty()) throw DoesNotFit("{}", first);
  const PhaseTimes::Scope scope(times, "memory and first weights");
  return {std::move(plan->train), parts.model, backend, options, groups};
}

std::vector<StartPart> start_parts(const std::vector<PhaseTime>& phases) {
  std::vector<StartPart> parts;
  for (const PhaseTime& phase : phases) parts.push_back({phase.name, 1e3 * phase.seconds, phase.times});
  return parts;
}

ReductionSummary reduction_summary(const ServedFigures& served) {
  return {.servers = served.servers,
          .servers_left = served.alive,
          .streams = served.hosts,
          .sums = served.sums,
          .bytes_sent = served.bytes_sent,
          .bytes_received = served.bytes_received,
          .seconds = served.seconds,
          .fallbacks = served.fallbacks,
          .lost = served.lost};
}

JoinedWorkers join_others(const JobParts& parts, const RunOptions& options) {
  require_evaluation(parts);  // while every worker can still say so by itself
  if (job_workers(parts.spec) == 1) return {};
  return options.join(parts);
}

// Adds to what went wrong with another worker where in the mesh that one is.
template <typename Body>
auto naming_place(const MeshShape& shape, const Body& body) {
  if (!shape.splits_model()) return body();
  try {
    return body();
  } catch (const PeerError& error) {
    if (error.peer() < 0 || error.peer() >= shape.ranks()) throw;
    throw PeerError(error.operation(), error.peer(),
                    fmt::format("{} (rank {} is {})", error.what(), error.peer(), shape.place(error.peer())));
  }
}

}  // namespace

TrainRun::TrainRun(JobSpec spec, RunOptions options)
    : begun_seconds_(seconds_since_start()),
      options_(std::move(options)),
      signals_(options_.leads),
      backend_(start_.timed(
          "device",
          [&] { return options_.device ? options_.device() : make_job_backend(spec, options_.host); })),
      parts_(start_.timed(
          "data and model",
          [&] { return build_parts(std::move(spec), *backend_, options_.host, options_.leads); })),
      joined_(start_.timed("meeting", [&] { return join_others(parts_, options_); })),
      workers_(joined_.all.get()),
      compression_(settle_codec(parts_, *backend_, joined_, options_.fresh)),
      train_(fitting_step(parts_, *backend_, workers_, joined_.groups(), start_)),
      engine_(options_.engine ? options_.engine(parts_, train_) : nullptr),
      reading_(parts_.spec, parts_.host),
      feeder_(*parts_.data.train, job_order(parts_), train_, parts_.steps(), reading_.train()),
      pace_(parts_.host.local_rank),
      held_out_(start_.timed("evaluation",
                             [&] {
                               return job_held_out(parts_, *backend_, reading_.eval(), options_.leads,
                                                   train_.state_as_it_lies());
                             })),
      guard_(job_guard(parts_.spec)),
      examiner_(job_facts(parts_), parts_.model, parts_.options.passes, diagnosis_path(parts_.spec.output)) {}

RunSummary TrainRun::run() {
  summary_.started = utc_time(std::time(nullptr));
  signals_.begin();
  const MeshShape& mesh = parts_.options.mesh;
  const auto begin_here = [this] {
    return start_.timed("run folder and checkpoint", [this] { return begin(); });
  };
  if (!naming_place(mesh, begin_here)) {
    end("done", "", kDone);
    return finished_ ? *finished_ : summarise();
  }
  const auto write = [this](const RunSummary& summary) {
    if (workers_.leads()) write_summary(summary_path(parts_.spec.output), summary);
  };
  try {
    naming_place(mesh, [this] { loop(); });
    gather();
    // While the last checkpoint is written.
    weights_sha256_ = last_hash();
    if (checkpoints_) checkpoints_->finish();
  } catch (const UserError& error) {
    end("failed", error.what(), kFailed);
  } catch (const DeviceError& error) {
    const std::string told =
        fmt::format("{}; noticed in step {}, {}", error.what(), state_.step + 1, kept_so_far());
    end("failed", told, kFailed);
    write(summarise());
    throw DeviceError("{}", told);
  } catch (const std::exception& error) {
    end("failed", error.what(), kFailed);
    write(summarise());
    throw;
  }
  RunSummary summary = summarise();
  if (engine_) engine_->finish(summary.status);
  try {
    write(summary);
    if (watch_) watch_->finish(summary);
  } catch (const UserError& error) {
    // A disk that is full to the last byte. What the run has reached lies in its checkpoint.
    log_error("{}", error.what());
    if (summary.exit_code == kDone) summary.exit_code = kFailed;
  }
  return summary;
}

std::string TrainRun::kept_so_far() const {
  const auto last = exchanges() ? latest_checkpoint(checkpoint_folder(parts_.spec)) : std::nullopt;
  if (!last) return "before any checkpoint: the run begins again when it is started again";
  return fmt::format("and the run goes on after step {} when it is started again", last->step);
}

void TrainRun::share_split_state() {
  split_ = std::make_unique<SplitState>(workers_, train_);
  const SplitTensors tensors{
      .read = [this](const StateTensor& tensor, int64_t first,
                     std::span<std::byte> into) { split_->read(tensor, first, into); },
      .write = [this](const StateTensor& tensor, int64_t first,
                      std::span<const std::byte> from) { split_->write(tensor, first, from); }};
  train_.split_with(tensors);
  if (held_out_.units().empty()) return;
  evaluated_units_ = std::make_unique<UnitReader>(
      *backend_, held_out_.units(),
      [this](std::string_view name) -> const StateTensor& { return train_.state().evaluated_tensor(name); },
      tensors.read);
  held_out_.gather_with(*evaluated_units_);
}

void TrainRun::settle_writers() {
  if (!writers_) return;
  const std::string reason = parts_.spec.checkpoint.writers == CheckpointWriting::kLeader
                                 ? "as checkpoint.writers says"
                                 : writers_->find_strangers();
  if (!reason.empty()) {
    checkpoint_writers_ = fmt::format("worker 0 ({})", reason);
    return;
  }
  checkpoint_writers_ = "all workers, each what it owns";
  checkpoints_->write_together(
      static_cast<int>(workers_.count()),
      [this, ask = errands_.asker()](const std::string& folder, bool weights_alone,
                                     std::span<std::byte> staging) {
        CheckpointWriters::Written written;
        ask([&] { written = writers_->write(folder, checkpoints_->left_out(), weights_alone, staging); });
        // Not of those who speak to other workers: the run goes on without this checkpoint.
        if (!written.error.empty()) throw UserError("{}", written.error);
        return written.sums;
      });
}

bool TrainRun::begin() {
  if (train_.state().is_split()) share_split_state();
  if (joined_.all && !engine_ && exchanges())
    writers_ = std::make_unique<CheckpointWriters>(workers_, train_, checkpoint_folder(parts_.spec));
  workers_.require_same("identity", shared_part(parts_.identity).sha256());
  const Found own = workers_.leads() ? begin_as_leader() : Found::kNothing;
  if (workers_.leads() && own == Found::kNothing && parts_.initial) start_from(*parts_.initial, train_);
  const auto found =
      static_cast<Found>(workers_.agree(static_cast<int64_t>(own), "what the output folder holds"));
  if (found == Found::kFinished) return false;
  const bool resumes = found == Found::kCheckpoint;
  if (joined_.all && resumes) {
    share_state(*joined_.all, train_, state_);
    if (!workers_.leads()) adopt(RunState(state_));
  } else if (joined_.all) {
    share_weights(*joined_.all, train_);
    if (split_) train_.state().begin_averages();
  }
  require_same_weights("set of first weights");
  if (joined_.all) hosts_ = count_hosts(*joined_.all);
  // What a rewind before the first checkpoint goes back to.
  if (!resumes && workers_.leads() && parts_.spec.train.guard.non_finite == NonFinitePolicy::kRewind)
    save(false);
  if (engine_)
    engine_->begin(state_.step, [this](const std::string& text) {
      watch_ ? say(text) : void(*options_.out << text << "\n");
    });
  return true;
}

void TrainRun::gather() {
  if (engine_) engine_->gather();
}

void TrainRun::still_working(const std::string& what) {
  workers_.still_working(what);
  if (engine_) engine_->still_working();
}

TrainRun::Found TrainRun::begin_as_leader() {
  const JobSpec& spec = parts_.spec;
  require_run_folder(spec);
  const bool resumes = !options_.fresh && exchanges() && latest_checkpoint(checkpoint_folder(spec));
  const std::set<std::string> base = frozen_in_folder(parts_);
  read_pretrained(parts_, resumes && base.empty() ? nullptr : &train_);
  const std::vector<NamedText> files = describing_files(parts_, options_.job);
  checkpoints_ = std::make_unique<TrainingCheckpoints>(checkpoint_folder(spec), spec.checkpoint.keep,
                                                       parts_.identity, files);
  checkpoints_->leave_out(base);
  const auto read = [this](const StateTensor& tensor, int64_t first, std::span<std::byte> into) {
    split_->read(tensor, first, into);
  };
  const auto read_elsewhere = [read, ask = errands_.asker()](const StateTensor& tensor, int64_t first,
                                                             std::span<std::byte> into) {
    ask([&] { read(tensor, first, into); });
  };
  if (split_)
    checkpoints_->split_with(
        {.read = joined_.all ? SplitTensors::Read(read_elsewhere) : SplitTensors::Read(read),
         .write = [this](const StateTensor& tensor, int64_t first, std::span<const std::byte> from) {
           split_->write(tensor, first, from);
         }});
  if (checkpoint_folder(spec) != spec.output) output_lock_.emplace(spec.output);
  settle_writers();
  if (options_.fresh) checkpoints_->discard_all();
  const std::optional<int64_t> resumed = exchanges() ? restore() : std::nullopt;
  if (resumed && options_.from.empty()) {
    finished_ = finished_run(parts_, held_out_.should_stop());
    if (finished_) *options_.out << describe_finished(spec.output, *finished_) << "\n";
    if (finished_) return Found::kFinished;
  }
  if (resumed) {
    retain_rewind_target();
    checkpoints_->complete(state_.step, held_out_.best() && held_out_.best()->step == state_.step);
  }
  open_folder(resumed, files);
  return resumed ? Found::kCheckpoint : Found::kNothing;
}

std::optional<int64_t> TrainRun::restore() {
  std::optional<TrainingCheckpoints::Restored> restored;
  if (options_.from.empty()) {
    restored = checkpoints_->restore(train_);
  } else {
    const int64_t step = step_to_resume(parts_.spec, options_.from);
    require_steps_left(parts_, checkpoint_path(checkpoint_folder(parts_.spec), step), step);
    restored = checkpoints_->rewind(train_, step);
  }
  if (!restored) return std::nullopt;
  adopt(run_state_of(*restored));
  require_steps_left(parts_, restored->path, state_.step);
  if (restored->weights_alone && state_.step < parts_.steps() && !held_out_.should_stop())
    refuse_to_go_on(restored->path);
  return state_.step;
}

void TrainRun::open_folder(const std::optional<int64_t>& resumed, const std::vector<NamedText>& files) {
  const JobSpec& spec = parts_.spec;
  open_run_folder(spec, files);
  const int64_t before = record_start(spec.output,
                                      {.time = summary_.started,
                                       .identity = parts_.identity.sha256(),
                                       .step = state_.step,
                                       .workers = workers_.count()},
                                      options_.fresh);
  // Checkpoints that came from elsewhere know of starts that this folder does not.
  state_.restarts = std::max(before, resumed ? state_.restarts + 1 : 0);
  watch_ = std::make_unique<Watch>(WatchOptions{.folder = spec.output,
                                                .total_steps = parts_.steps(),
                                                .resume_step = resumed,
                                                .evaluates_again = is_evaluation_left(),
                                                .tokens_per_step = tokens_per_step(),
                                                .out = options_.out,
                                                .out_descriptor = options_.out_descriptor});
  for (const std::string& line :
       announcement(parts_, workers_.group(), train_.buckets(), train_.device_route(),
                    backend_->architecture(), planned_bytes()))
    say(line);
  if (compression_ && !compression_->reason.empty())
    say(fmt::format("{:<10} {} ({})", "compress", compression_->codec, compression_->reason));
  if (!checkpoint_writers_.empty()) say(fmt::format("{:<10} {}", "saved by", checkpoint_writers_));
  if (resumed) say(fmt::format("resuming after step {} from {}", *resumed, checkpoint_folder(spec)));
}

void TrainRun::adopt(const RunState& restored) {
  state_ = restored;
  guard_.restore(state_.guard);
  held_out_.restore(state_.held_out);
  last_loss_ = state_.loss;
}

void TrainRun::say(const std::string& text) {
  if (watch_) watch_->message(text);
}

void TrainRun::loop() {
  // The checkpoint was written before it, or it was not asked for then.
  if (workers_.leads() && is_evaluation_left()) evaluate();
  // A run that was killed between its last evaluation and its end has nothing left to do.
  end_if_agreed();
  while (summary_.status.empty() && state_.step < last_step()) {
    const double begin = now();
    one_step();
    if (first_step_seconds_ > 0) continue;
    first_step_seconds_ = seconds_since_start();
    start_.add("first step", now() - begin);
    beside_start_ = backend_->start_times();
    tell_start();
    // What it loads is not in the start's way.
    if (workers_.leads())
      device_watch_ = std::make_unique<DeviceWatch>([this] { return backend_->monitor(); });
  }
  if (!summary_.status.empty()) return hash_together();
  gather();
  if (workers_.leads()) {
    if (checkpoints_->last_step() != state_.step) save(false);
    if (is_evaluation_left()) evaluate();
  }
  hash_weights();
  workers_.agree(0, "the last evaluation");
  hash_together();
  if (train_.pipeline() != nullptr) stages_ = stage_times(*train_.pipeline(), joined_.groups(), workers_);
  if (exchanges()) require_same_weights("set of final weights");
  end("done", "", kDone);
}

void TrainRun::hash_together() {
  if (!train_.units().empty()) weights_sha256_ = train_.weights_sha256();
}

void TrainRun::one_step() {
  const int64_t step = state_.step + 1;
  const double start = now();
  const double input_before = feeder_.seconds();
  const double comm_before = train_.comm_seconds();
  const double held_before = train_.held_seconds();
  pace_.begin();
  const Request request = [this] {
    if (!engine_) pace_.wait(train_.tree().microbatches());
    return static_cast<int64_t>(asked_by_signal());
  };
  const StepResult result =
      engine_ ? engine_->next(request)
              : train_.accumulate([&](int64_t microbatch) { feeder_.load(train_, step, microbatch); }, step,
                                  request);
  requested_ = static_cast<Ending>(result.request);
  const double accumulated = now();
  const double comm_of_sums = train_.comm_seconds() - comm_before;

  StepRecord record;
  record.step = step;
  record.loss = result.loss;
  record.grad_norm = result.grad_norm;
  record.count = result.count;
  record.lr = parts_.schedule.lr(step) * guard_.lr_factor();
  record.samples = parts_.spec.train.global_batch;
  record.tokens = tokens_per_step();
  if (device_watch_) record.device = device_watch_->latest();
  const Decision decision = guard_.decide({step, result.loss, result.grad_norm, result.count});
  const bool applies = decision.action == Decision::Action::kApply;
  if (engine_)
    applies ? engine_->apply(record.lr) : engine_->skip();
  else if (applies)
    train_.apply(record.lr);
  const double applied = now();

  record.seconds = applied - start;
  record.shares.input_wait = feeder_.seconds() - input_before;
  record.shares.exposed_comm = train_.comm_seconds() - comm_before;
  record.shares.compute = accumulated - start - record.shares.input_wait - comm_of_sums;
  // Waiting for a checkpoint that still reads the state.
  record.shares.other = train_.held_seconds() - held_before;
  record.shares.optimizer =
      applied - accumulated - (record.shares.exposed_comm - comm_of_sums) - record.shares.other;
  if (engine_) record.shares = engine_->shares(record.seconds);
  act(decision, record);
}

void TrainRun::examine(const Decision& decision, const StepRecord& record) {
  const int64_t step = record.step;
  const Diagnosis diagnosis = examiner_.examine(
      decision, {step, record.loss, record.grad_norm, record.count}, record.lr, train_,
      {.load =
           [&](int64_t microbatch) {
             workers_.still_working("the diagnosis");
             feeder_.load(train_, step, microbatch);
           },
       .describe =
           [&](int64_t microbatch, int64_t row) {
             return feeder_.source().describe(feeder_.records(step, microbatch).at(static_cast<size_t>(row)));
           }});
  for (const std::string& line : lines_of(to_text(diagnosis))) say(line);
}

void TrainRun::act(const Decision& decision, StepRecord& record) {
  record.note = decision.text;
  switch (decision.action) {
    case Decision::Action::kApply:
      last_loss_ = record.loss;
      examiner_.good_step(record.loss, record.grad_norm);
      break;
    case Decision::Action::kSkip:
      record.action = kSkipped;
      ++state_.skipped;
      break;
    case Decision::Action::kRewind: record.action = kRewound; break;
    case Decision::Action::kStop: record.action = kStopped; break;
  }
  if (watch_) watch_->step(record);
  if (decision.trouble != Trouble::kNone && workers_.leads()) {
    if (engine_)
      say("no diagnosis: the step was computed elsewhere, from weights that are gone; repeat it with "
          "strategy.mode sync, from the last checkpoint");
    else if (train_.holders().is_split() || train_.state().in_leaves())
      say("no diagnosis: it runs a microbatch through the whole model, which no worker has in one piece; run "
          "the steps without strategy.pipeline and strategy.tensor_leaves to see it");
    else
      examine(decision, record);
  }
  if (decision.action == Decision::Action::kStop) {
    // Nobody leaves before the leader has found out what it was.
    hash_weights();
    workers_.agree(0, "the diagnosis");
    return end("diverged", decision.text, kDiverged);
  }
  if (decision.action == Decision::Action::kRewind) return rewind();
  state_.step = record.step;
  finish_step(decision.trouble != Trouble::kNone);
}

void TrainRun::rewind() {
  const int64_t target = rewind_target();
  // The checkpoint may still be on its way to the disk.
  if (workers_.leads()) {
    wait_for_disk();
    checkpoints_->finish();
  }
  workers_.agree(target, "the step to rewind to");
  RunState restored;
  if (workers_.leads()) restored = run_state_of(checkpoints_->rewind(train_, target));
  // Of what is split the others take their pieces meanwhile.
  if (split_) workers_.agree(0, "the checkpoint");
  if (joined_.all) share_state(*joined_.all, train_, restored);
  state_.step = restored.step;
  guard_.after_rewind(restored.guard);
  held_out_.restore(restored.held_out);
  if (watch_) watch_->rewind(restored.step);
  say(fmt::format("back to the checkpoint of step {}, with {} of the learning rate", restored.step,
                  guard_.lr_factor()));
  if (!is_evaluation_left()) return;
  if (workers_.leads()) evaluate();
  workers_.agree(0, "the evaluation");
}

// The last checkpoint that was due, not the last one that was written: a signal, or an evaluation that was
// the best, may have written one in between, and the bits must not depend on that. Not the one that the bad
// step follows directly: its weights give the same gradient again, whatever the learning rate.
int64_t TrainRun::rewind_target() const {
  const std::optional<int64_t>& every = parts_.resolved.checkpoint_every;
  return every && state_.step > 0 ? (state_.step - 1) / *every * *every : 0;
}

void TrainRun::retain_rewind_target() {
  if (parts_.spec.train.guard.non_finite == NonFinitePolicy::kRewind) checkpoints_->retain(rewind_target());
}

void TrainRun::require_same_weights(std::string_view what) {
  // Of a model that is split, those who hold the same part compare it.
  Group* const alike = train_.holders().is_split() ? joined_.groups().data : joined_.all.get();
  if (alike == nullptr) return;  // the hash of a large model takes seconds
  // Of the end, where all have hashed what is owned in pieces together.
  Workers(alike).require_same(
      what, weights_sha256_.empty() || asks_for_hash() ? train_.weights_sha256() : weights_sha256_);
}

// The leader asks for what others hold, while they wait in agree().
void TrainRun::hash_weights() {
  if (workers_.leads() && asks_for_hash()) weights_sha256_ = split_->weights_sha256();
}

void TrainRun::finish_step(bool examined) {
  const bool last = state_.step == last_step();
  const bool evaluates = !last && held_out_.exists() && due(parts_.resolved.eval_every, state_.step);
  const bool saves = !last && due(parts_.resolved.checkpoint_every, state_.step);
  if (workers_.leads()) {
    // In this order: an evaluation may take long, or fail.
    if (saves && checkpoints_->last_step() != state_.step) save(false);
    if (evaluates) evaluate();
  }
  // Where the leader has worked alone the others wait for it, which is worth a message; elsewhere signals
  // come with the sums of a step, where these are exchanged.
  if (evaluates || saves || examined || !exchanges()) return end_if_agreed();
  if (!last) end_with(requested_);
}

TrainRun::Ending TrainRun::asked_by_signal() const {
  if (!workers_.leads()) return Ending::kNone;
  switch (signals_.caught()) {
    case 0: return Ending::kNone;
    case SIGINT: return Ending::kInterrupted;
    case SIGHUP: return Ending::kHungUp;
    case SIGUSR1: return Ending::kUser1;
    case SIGUSR2: return Ending::kUser2;
    default: return Ending::kTerminated;
  }
}

void TrainRun::end_if_agreed() {
  Ending ending = Ending::kNone;
  if (held_out_.should_stop())
    ending = Ending::kEarly;
  else if (state_.step < parts_.steps())
    ending = asked_by_signal();
  end_with(static_cast<Ending>(workers_.agree(static_cast<int64_t>(ending), "whether to go on")));
}

void TrainRun::end_with(Ending ending) {
  if (ending == Ending::kNone) return;
  if (workers_.leads() && (checkpoints_->last_step() != state_.step || saved_before_evaluation_)) save(false);
  hash_weights();
  workers_.agree(0, "the last checkpoint");
  const char* const saved =
      exchanges() ? "a checkpoint was saved" : "no checkpoint, since nothing is exchanged";
  // What a scheduler sends before it takes the machine, and a terminal that is closed: to be started again.
  const auto preempted = [&](const char* signal) {
    end("preempted", fmt::format("{}; {}", signal, saved), kPreempted);
  };
  switch (ending) {
    case Ending::kNone: return;
    case Ending::kEarly: return end("stopped_early", "the evaluations made no progress any more", kDone);
    case Ending::kTerminated: return preempted("SIGTERM");
    case Ending::kHungUp: return preempted("SIGHUP");
    case Ending::kUser1: return preempted("SIGUSR1");
    case Ending::kUser2: return preempted("SIGUSR2");
    case Ending::kInterrupted: return end("interrupted", fmt::format("SIGINT; {}", saved), kInterrupted);
  }
}

bool TrainRun::is_evaluation_left() const {
  const int64_t step = state_.step;
  const bool asked = step == parts_.steps() || due(parts_.resolved.eval_every, step);
  return step > 0 && asked && held_out_.exists() && (!held_out_.last() || held_out_.last()->step < step);
}

void TrainRun::evaluate() {
  EvalRecord record;
  gather();
  try {
    record = held_out_.evaluate(train_, state_.step, working_on("the evaluation"));
  } catch (const CommError&) {
    throw;  // the others are gone, and a checkpoint needs them
  } catch (const UserError& error) {
    throw UserError("the evaluation after step {} failed ({}): {}", state_.step, save_before_failing(),
                    error.what());
  } catch (const std::exception&) {
    log_error("the evaluation after step {} failed ({})", state_.step, save_before_failing());
    throw;
  }
  watch_->evaluation(record);
  saved_before_evaluation_ = checkpoints_->last_step() == state_.step;
  if (!record.best) return;
  if (!saved_before_evaluation_) return save(true);
  wait_for_disk();
  checkpoints_->complete(state_.step, true);
}

std::string TrainRun::save_before_failing() {
  if (!exchanges()) return "nothing is saved, since nothing is exchanged";
  if (saved_content() == SavedContent::kNone) return "nothing is saved, as checkpoint.final says";
  try {
    if (checkpoints_->last_step() != state_.step) save(false);
    checkpoints_->finish();
    return "a checkpoint was saved before";
  } catch (const UserError& error) {
    return error.what();
  }
}

SavedContent TrainRun::saved_content() const {
  const bool ends = state_.step >= parts_.steps() || held_out_.should_stop();
  return ends ? parts_.spec.checkpoint.final : SavedContent::kAll;
}

void TrainRun::save(bool best) {
  if (!exchanges() || saved_content() == SavedContent::kNone) return;
  gather();
  if (engine_) engine_->sync();
  saved_before_evaluation_ = false;
  state_.guard = guard_.state();
  state_.held_out = held_out_.state();
  state_.loss = last_loss_;
  watch_->sync();
  retain_rewind_target();
  wait_for_disk();
  checkpoints_->save(train_, state_.step, to_json(state_, train_.steps_applied()), best,
                     saved_content() == SavedContent::kWeights);
  // The gate stops this process alone; others of this host would change the state that they hold together,
  // and others of the run what they own.
  const bool asks = split_ || writers_;
  while (joined_.all && !checkpoints_->read_within(asks ? std::chrono::milliseconds(0) : kLookAgain)) {
    if (asks) errands_.answer(kNextErrand);
    still_working("a checkpoint");
  }
}

// For the checkpoint before this one, which may still be on its way.
void TrainRun::wait_for_disk() {
  while (!checkpoints_->idle_within(kLookAgain)) still_working("a checkpoint");
}

void TrainRun::end(std::string status, std::string reason, int64_t exit_code) {
  summary_.status = std::move(status);
  summary_.error = std::move(reason);
  summary_.exit_code = exit_code;
}

void TrainRun::tell_start() const {
  RunSummary start;
  fill_start(start);
  for (const StartPart& part : start.start) log_debug("start: {} {:.1f} ms", part.name, part.ms);
  for (const StartPart& part : start.beside_start)
    log_debug("beside the start: {} {:.1f} ms, {} times", part.name, part.ms, part.times);
}

void TrainRun::fill_start(RunSummary& summary) const {
  summary.time_to_first_step_s = first_step_seconds_;
  if (first_step_seconds_ == 0) return;
  summary.start = start_parts(start_.all());
  summary.start.insert(summary.start.begin(), {"program and job", 1e3 * begun_seconds_, 1});
  summary.beside_start = start_parts(beside_start_);
}

// A device that has failed gives no weights.
std::string TrainRun::last_hash() try {
  const bool is_there = !weights_sha256_.empty() || asks_for_hash() || !train_.units().empty();
  return is_there ? weights_sha256_ : train_.weights_sha256();
} catch (const DeviceError&) {
  if (summary_.exit_code == kDone) throw;
  return "";
}

RunSummary TrainRun::summarise() {
  RunSummary summary = summary_;
  summary.name = parts_.spec.name;
  summary.job_file = parts_.spec.file;
  summary.ended = utc_time(std::time(nullptr));
  summary.warnings = job_warnings(parts_);
  summary.steps = state_.step;
  summary.final_loss = last_loss_;
  summary.weights_sha256 = last_hash();
  // What the servers of a run that failed have is not known.
  if (engine_ && !engine_->is_gathered()) summary.weights_sha256.clear();
  summary.identity_sha256 = parts_.identity.sha256();
  summary.final_eval = held_out_.last();
  summary.best_eval = held_out_.best();
  summary.parameters = train_.param_count();
  summary.global_batch = parts_.spec.train.global_batch;
  summary.microbatches = parts_.resolved.microbatches;
  summary.leaves = parts_.resolved.leaves;
  summary.peak_lr = parts_.schedule.peak();
  summary.workers = workers_.count();
  summary.threads_per_worker = job_threads(parts_.spec, parts_.host);
  summary.reduce_order = exchanges() ? std::string(name_of(parts_.spec.strategy.reduce.order)) : "none";
  summary.bucket_bytes = train_.buckets().bytes();
  if (const std::string route = train_.device_route(); !route.empty()) summary.device_route = route;
  if (const ServedFigures* served = joined_.all ? joined_.all->served() : nullptr)
    summary.reduction = reduction_summary(*served);
  if (train_.state().ownership().is_split()) summary.zero = train_.state().ownership().stage();
  if (joined_.part) summary.zero_group = joined_.part->size();
  if (!checkpoint_writers_.empty()) summary.checkpoint_writers = checkpoint_writers_;
  if (const MeshShape& mesh = parts_.options.mesh; mesh.splits_model()) summary.mesh = mesh.text();
  summary.stages = stages_;
  fill_start(summary);
  if (device_watch_) summary.device = device_watch_->summary();
  summary.peak_memory_bytes = peak_memory_bytes();
  if (backend_->memory() == MemoryKind::kDevice) summary.device_memory_bytes = backend_->peak_bytes();
  summary.planned_memory_bytes = planned_bytes();
  summary.network_bytes = joined_.all ? joined_.all->network_bytes() : 0;
  if (joined_.mesh)
    for (const MeshAxis axis : kMeshAxes)
      if (const Group* group = joined_.mesh->group(axis)) summary.network_bytes += group->network_bytes();
  for (const Group* group : {joined_.part.get(), joined_.replicas.get()})
    if (group != nullptr) summary.network_bytes += group->network_bytes();
  summary.skipped_steps = state_.skipped;
  summary.restarts = state_.restarts;
  summary.input = input_summary(feeder_.report());
  if (engine_) engine_->fill(summary);
  if (watch_) watch_->statistics().fill(summary);
  summary.compression = compression_;
  if (watch_ && watch_->statistics().steps() > 0)
    summary.communication = communication_summary(
        parts_, train_, {.hosts = static_cast<int>(hosts_), .served = summary.reduction.has_value()},
        1e3 * watch_->statistics().step_seconds() / static_cast<double>(watch_->statistics().steps()));
  return summary;
}

}  // namespace lockstep
