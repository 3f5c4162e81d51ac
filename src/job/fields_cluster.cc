// Where the job runs and what it leaves behind: strategy, workerPoolSpecs, checkpoint, output.
//
// workerPoolSpecs and the keys beside it are those of a Vertex AI CustomJob. What only its service can use is
// read and passed over, with a note.
#include "job/fields.h"

namespace lockstep {

#define LOCKSTEP_POOL_FIELD(member, doc) \
  Field(                                 \
      "workerPoolSpecs[]." #member, +[](JobSpec& spec) { return &spec.workerPoolSpecs.back().member; }, doc)

std::vector<Field> pool_fields() {
  return {
      LOCKSTEP_POOL_FIELD(machineSpec.machineType, "local, or the provider's name")
          .defaults_to("local")
          .example("n1-standard-16"),
      LOCKSTEP_POOL_FIELD(machineSpec.acceleratorType, "the provider's name of the accelerator")
          .or_else("none")
          .example("NVIDIA_L4"),
      LOCKSTEP_POOL_FIELD(machineSpec.acceleratorCount, "accelerators of one machine")
          .defaults_to("0")
          .at_least(0)
          .at_most(1024),
      Field("workerPoolSpecs[].machineSpec.tpuTopology", "of Vertex AI"),
      Field("workerPoolSpecs[].machineSpec.reservationAffinity", "of Vertex AI"),
      LOCKSTEP_POOL_FIELD(
          replicaCount,
          "machines of the pool, a worker each unless strategy.workers is set; pool 0 is the "
          "first worker, 1 the "
          "others, 2 reduction servers, 3 evaluators (refused by this version: the workers evaluate)")
          .defaults_to("1")
          .at_least(0)
          .at_most(1e6),
      Field("workerPoolSpecs[].containerSpec", "of Vertex AI"),
      Field("workerPoolSpecs[].pythonPackageSpec", "of Vertex AI"),
      Field("workerPoolSpecs[].diskSpec", "of Vertex AI"),
      Field("workerPoolSpecs[].nfsMounts", "of Vertex AI"),
  };
}

std::vector<Field> vertex_fields() {
  std::vector<Field> fields;
  for (const std::string_view name :
       {"displayName", "labels", "encryptionSpec", "scheduling", "serviceAccount", "network",
        "reservedIpRanges", "pscInterfaceConfig", "baseOutputDirectory", "protectedArtifactLocationId",
        "tensorboard", "enableWebAccess", "enableDashboardAccess", "experiment", "experimentRun",
        "persistentResourceId"})
    fields.emplace_back(name, "of Vertex AI");
  return fields;
}

std::vector<Field> strategy_fields() {
  return {
      LOCKSTEP_FIELD(strategy.mode,
                     "sync: all workers make every step together; async: each takes whole global batches and "
                     "pushes its gradients to parameter servers when it is ready (docs/async.md)")
          .defaults_to("sync"),
      LOCKSTEP_FIELD(strategy.staleness,
                     "of mode async: how many updates the weights that a gradient was computed with may be "
                     "behind those that it is applied to; 0: synchronous, with its bits")
          .defaults_to("16")  // kDefaultStaleness
          .at_least(0)
          .at_most(32767),
      LOCKSTEP_FIELD(strategy.servers, "of mode async: processes that hold the parameters and the optimizer")
          .defaults_to("1")
          .at_least(1)
          .at_most(256),
      LOCKSTEP_FIELD(strategy.workers, "processes that share the work")
          .takes_auto()
          .at_least(1)
          .at_most(1 << 20)
          .defaults_to("auto"),
      LOCKSTEP_FIELD(strategy.threads,
                     "threads of a worker; auto: its part of the cores that it may run on and has a quota of "
                     "time for")
          .takes_auto()
          .at_least(1)
          .at_most(4096)
          .defaults_to("auto"),
      LOCKSTEP_FIELD(strategy.leaves,
                     "partial sums of the gradient, at most one worker each; part of the run's identity, "
                     "must divide the microbatches of a step")
          .takes_auto()
          .at_least(1)
          .at_most(1 << 20)
          .defaults_to("auto"),
      LOCKSTEP_FIELD(strategy.zero,
                     "ZeRO stage: what workers share out instead of repeating; 1: the optimizer's state and "
                     "averages, 2: the sums of gradients too, 3: the parameters too; the bits are the same")
          .defaults_to("0")
          .at_least(0)
          .at_most(3),
      LOCKSTEP_FIELD(
          strategy.zero_group,
          "workers that share out among each other what strategy.zero says; every group of so many "
          "that follow each other holds all of it, so that parameters are gathered within it alone: "
          "the workers of a host, say; must divide the workers; the bits are the same")
          .at_least(2)
          .at_most(1 << 20)
          .or_else("all workers")
          .example("8"),
      LOCKSTEP_FIELD(strategy.offload,
                     "state: the optimizer's state and averages lie in the host's memory, which the device's "
                     "update reads and writes across the bus; the bits are the same")
          .defaults_to("none"),
      LOCKSTEP_FIELD(strategy.pipeline,
                     "workers that share the layers, each a stage of a pipeline; the bits are the same")
          .defaults_to("1")
          .at_least(1)
          .at_most(1024),
      LOCKSTEP_FIELD(strategy.schedule,
                     "the order in which the stages of a pipeline work; gpipe holds the activations of all "
                     "microbatches, interleaved gives every worker several stages, zero-bubble makes "
                     "gradients of weights while others wait; the bits are the same")
          .defaults_to("1f1b"),
      LOCKSTEP_FIELD(strategy.chunks, "stages of a worker, with strategy.schedule interleaved")
          .defaults_to("2")
          .at_least(1)
          .at_most(64),
      LOCKSTEP_FIELD(strategy.tensor,
                     "workers of one host that share the matrices of every layer, and tables and head where "
                     "strategy.tensor_leaves divides the vocabulary; the bits are the same for "
                     "any number of them that shares strategy.tensor_leaves evenly")
          .defaults_to("1")
          .at_least(1)
          .at_most(1024),
      LOCKSTEP_FIELD(
          strategy.tensor_leaves,
          "parts that matrices of layers, tables and head are cut into, and inner sums with them; part of "
          "the run's identity; auto: strategy.tensor")
          .takes_auto()
          .at_least(1)
          .at_most(1024)
          .defaults_to("auto")
          .example("8"),
      LOCKSTEP_FIELD(
          strategy.reduce.via,
          "how gradients travel; server: Reduction Servers add them up; none: not at all, for "
          "measuring what communication costs (every worker trains alone, no checkpoint is written)")
          .defaults_to("direct"),
      LOCKSTEP_FIELD(strategy.reduce.servers,
                     "Reduction Servers, of via server; auto: machines of pool 2 of workerPoolSpecs, else 1")
          .takes_auto()
          .at_least(1)
          .at_most(256)
          .defaults_to("auto"),
      LOCKSTEP_FIELD(strategy.reduce.order,
                     "canonical gives the same bits on any number of workers; fast adds up what a worker has "
                     "in one sum, and the bits depend on their number")
          .defaults_to("canonical"),
      LOCKSTEP_FIELD(strategy.reduce.bucket,
                     "gradients that are reduced together while backward goes on; auto: a 32nd of them, 512 "
                     "KiB (via server 2 MiB) to 16 MiB")
          .takes_auto()
          .in_bytes()
          .at_least(1 << 12)
          .defaults_to("auto")
          .example("4MiB"),
      LOCKSTEP_FIELD(
          strategy.reduce.compress,
          "how gradients are compressed; part of the run's identity, and the same bits on any number "
          "of workers: bf16 and int8 round every leaf and every sum of two, to 2 and 1.03 bytes a "
          "value; topk adds up the largest of every 1024 and keeps the rest for later steps, "
          "powersgd sends matrices as narrow ones and keeps what they leave out; auto tries "
          "none, bf16 and int8 for some steps before the first and takes what makes them shorter; onebit is "
          "refused, with the reason")
          .defaults_to("none"),
      LOCKSTEP_FIELD(strategy.reduce.topk, "share of the gradients that are sent in a step, of compress topk")
          .defaults_to("0.01")
          .above(0)
          .at_most(1),
      LOCKSTEP_FIELD(strategy.reduce.rank, "of the matrices that are sent, of compress powersgd")
          .defaults_to("4")
          .at_least(1)
          .at_most(256),
      LOCKSTEP_FIELD(
          strategy.reduce.warmup,
          "of compress topk and powersgd: steps whose gradients are summed exactly before it begins; "
          "topk then sends half of the gradients, powersgd four times its rank, and less in "
          "proportion to the steps made, down to the share or rank of the job; part of the run's "
          "identity")
          .defaults_to("20%")
          .at_least(0)
          .example("400"),
      LOCKSTEP_FIELD(
          strategy.transport,
          "what joins workers; auto: shm within a host and ucx between hosts, and what devices exchange by "
          "cuda_ipc where they reach each other's memory and by nccl where they do not; shm and ucx: through "
          "memory of the hosts, ucx everywhere; nccl: also between devices of one host")
          .defaults_to("auto"),
      LOCKSTEP_FIELD(strategy.memory, "memory that a worker may plan for")
          .takes_auto()
          .in_bytes()
          .at_least(1 << 20)
          .defaults_to("auto")
          .example("16GiB"),
      LOCKSTEP_FIELD(
          strategy.deadline,
          "seconds that a worker waits for another, at the start and in a step, before the run fails")
          .defaults_to("600")
          .at_least(0.5)
          .at_most(604800),
  };
}

std::vector<Field> output_fields() {
  return {
      LOCKSTEP_FIELD(checkpoint.every, "how often to write a checkpoint")
          .above(0)
          .or_else("at the end only")
          .example("500"),
      LOCKSTEP_FIELD(checkpoint.keep, "newest checkpoints to keep; 0 keeps all")
          .defaults_to("2")
          .at_least(0)
          .at_most(1e6),
      LOCKSTEP_FIELD(checkpoint.dir, "where checkpoints go")
          .names_files()
          .or_else("the output folder")
          .example("/data/checkpoints"),
      LOCKSTEP_FIELD(checkpoint.final,
                     "what the last checkpoint holds when the run is at its end; weights: enough to use the "
                     "model, and not to make further steps")
          .defaults_to("all"),
      LOCKSTEP_FIELD(checkpoint.writers,
                     "who writes them; auto: all workers, each what it owns, where all see the same folder, "
                     "else the first one, which the others send what they own; leader: always the first one")
          .defaults_to("auto"),
      LOCKSTEP_FIELD(device,
                     "what workers compute on; auto: a GPU where this program finds one, else the processor")
          .defaults_to("auto"),
      LOCKSTEP_FIELD(output, "folder of everything that the run writes")
          .names_files()
          .or_else("runs/ and the job's name")
          .example("runs/fraud"),
  };
}

#undef LOCKSTEP_POOL_FIELD

}  // namespace lockstep
