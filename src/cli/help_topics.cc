#include "cli/help_topics.h"

#include "job/fields.h"

namespace lockstep {
namespace {

constexpr HelpTopic kTopics[] = {
    {"job-file", "what a job file says, and how its values are written",
     R"(A job is one YAML file with the sections model, data, train, checkpoint and strategy. A key that is not
known is an error that names the line and the nearest known key.

  lockstep init --template fraud job.yaml   a commented one that runs as it is
  lockstep check job.yaml                   every value that holds, where it came from, and the memory
  lockstep train job.yaml --set train.lr.base=1e-3 --set model.top=[64,32]
  lockstep help train.lr.base               one key: meaning, values, default
  lockstep help train.lr                    all keys of a section
  lockstep schema                           JSON Schema, for editors

Values: 2000, 1e-3; lengths of training 200, 5%, 10000 samples; bytes 512MiB, 16GiB; lists [512, 256].
`--set key=` goes back to the default. The whole reference is docs/job-file.md.
)"},
    {"data", "formats of files, and the tools that look at them",
     R"(data.train.files takes paths, folders and patterns; data.train.format says what they hold:

  csv jsonl tfrecord block parquet   tables: data.train.label names the label, and with
                                     data.train.text a column of text for an encoder
  text tokens                        corpora for gpt
  images tar                         images by class for resnet
  synthetic                          generated samples for the model's family

  lockstep data inspect job.yaml     what the files hold and what the model gets of it
  lockstep data index job.yaml       index them now; otherwise the first start does it
  lockstep data verify job.yaml      read every record once
  lockstep data convert FILES --to parquet --out FOLDER
  lockstep data transforms           what can be done to columns (docs/transforms.md)

Records to evaluate on: data.eval.files, data.hold_out (the last share) or data.split (by a key).
What is fitted to the training records (means, vocabularies) is kept with the run. More in docs/input.md.
)"},
    {"launching", "several workers, several hosts, other launchers",
     R"(strategy.workers starts that many processes on this host; the bits of the result are the same for any
number of them.

  lockstep train job.yaml --set strategy.workers=4
  lockstep train job.yaml --nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr 10.0.0.1
                          on every host, each with its own --node-rank; LOCKSTEP_TOKEN the same on all

Workers that torchrun, srun, mpirun or Vertex AI have started are recognised by their environment. Every
worker reads the job file and the data itself; worker 0 alone writes the output folder. What worker N prints
is in OUTPUT/logs/worker-N.log. More in docs/launching.md.
)"},
    {"output", "what a run writes, and how to look at it",
     R"(A run writes into `output` of its job:

  checkpoint-STEP/   weights, optimizer and position, complete or absent; `best` is a link to one of them
  metrics.jsonl      a line per step and per evaluation
  tensorboard/       the same for TensorBoard
  summary.json       written when the run ends, however it ends
  job.yaml           the job with every value that held; identity.json: what decides its bits
  logs/              of several workers

  lockstep show RUN                  figures, evaluations and the loss as a plot, also while it trains
  lockstep compare RUN RUN           whether their bits agree, and where they first differ
  lockstep export RUN --to onnx      the model for other programs
  lockstep train JOB                 again: goes on from the newest checkpoint; --fresh starts over

More in docs/observability.md and docs/checkpoints.md.
)"},
    {"generate", "texts that a language model writes",
     R"(lockstep generate MODEL --prompt TEXT continues a text with a causal language model: a Hugging Face folder, or a
run of gpt, llama or model.hf.

  lockstep generate ./Qwen3-0.6B --prompt "Once upon a time" --max-tokens 100
  lockstep generate runs/gpt --prompt "To be" --temperature 0.8 --top-p 0.95 --seed 7
  lockstep generate ./model --ids --prompt "1 17 42"     numbers of tokens, without a tokenizer
  lockstep generate ./model --prompt-file question.txt --stop "\n\n" --json

The likeliest token is taken each time, unless --sample, --temperature, --top-k or --top-p ask for a draw; the same
seed gives the same text for any number of threads. A text ends at the tokens that generation_config.json or
config.json name, before a --stop, or after --max-tokens. Weights stay bf16 where they are stored so. Exit code 3:
it does not fit into memory. More in docs/hugging-face.md.
)"},
    {"errors", "exit codes, and what to do about an error",
     R"(An error says what is wrong, where, and what to write instead. Exit codes:

    0  done
    1  failed; the root cause is printed, the first failing rank named
    2  bad usage or job file
    3  does not fit in memory; what would make it fit is listed
    4  `doctor` found a problem
    5  the environment is not as needed: a missing device, library or permission
    6  the training diverged; diagnosis.json in the output folder says where
   75  preempted, with a checkpoint saved: start it again
  130  ended by SIGINT        143  ended by SIGTERM

More in docs/errors.md.
)"},
    {"reproducibility", "which changes keep the bits of a result, and which do not",
     R"(After N steps the weights are bitwise the same for any number of threads and workers, any recompute policy,
and however often a run was killed and resumed. `weights_sha256` in summary.json and on standard output says so.

What may change bits is the identity of a run (identity.json): model, data, seeds, batch, microbatch, leaves,
learning rate and its course, optimizer, precision, the class of the processor. A checkpoint of another identity
is refused with what differs. `lockstep compare RUN RUN` shows both. More in docs/design.md.
)"}};

}  // namespace

std::span<const HelpTopic> help_topics() { return kTopics; }

std::vector<std::string> help_topic_names() {
  std::vector<std::string> names;
  for (const HelpTopic& topic : kTopics) names.emplace_back(topic.name);
  for (const std::string_view section : names_in(""))
    if (is_section(section)) names.emplace_back(section);
  return names;
}

}  // namespace lockstep
