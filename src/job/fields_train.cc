// The train section, except the learning rate.
#include "job/fields.h"

namespace lockstep {

std::vector<Field> batch_fields() {
  return {
      LOCKSTEP_FIELD(train.steps, "updates to make; or give epochs")
          .at_least(1)
          .at_most(1e12)
          .or_else("from epochs")
          .example("2000"),
      LOCKSTEP_FIELD(train.epochs, "passes over the data to make; or give steps")
          .above(0)
          .at_most(1e6)
          .or_else("from steps")
          .example("3"),
      LOCKSTEP_FIELD(train.global_batch,
                     "samples in one update: the batch that the optimizer sees, whatever the cluster")
          .required()
          .at_least(1)
          .at_most(1e9)
          .example("256"),
      LOCKSTEP_FIELD(train.microbatch, "samples that go through the model at once; must divide global_batch")
          .required()
          .at_least(1)
          .at_most(1e9)
          .example("32"),
  };
}

std::vector<Field> optimizer_fields() {
  constexpr std::string_view kName = "train.optimizer.name";
  return {
      LOCKSTEP_FIELD(train.optimizer.name, "the update rule").defaults_to("adamw"),
      LOCKSTEP_FIELD(train.optimizer.betas, "decay of the first and second moment")
          .at_least(0)
          .below(1)
          .when(kName, {{"adam", "[0.9, 0.999]"},
                        {"adamw", "[0.9, 0.999]"},
                        {"lamb", "[0.9, 0.999]"},
                        {"lion", "[0.9, 0.99]"}}),
      LOCKSTEP_FIELD(train.optimizer.eps, "added to the denominator")
          .above(0)
          .when(kName, {{"adam", "1e-8"}, {"adamw", "1e-8"}, {"lamb", "1e-6"}, {"adafactor", "1e-30"}}),
      LOCKSTEP_FIELD(train.optimizer.weight_decay, "of matrices; norms and biases are not decayed")
          .at_least(0)
          .when(kName, {{"sgd", "0"},
                        {"adam", "0"},
                        {"adamw", "0.01"},
                        {"lamb", "0.01"},
                        {"lion", "0"},
                        {"adafactor", "0"}}),
      LOCKSTEP_FIELD(train.optimizer.momentum, "decay of the momentum; 0 keeps none")
          .at_least(0)
          .below(1)
          .when(kName, {{"sgd", "0.9"}}),
      LOCKSTEP_FIELD(train.optimizer.nesterov, "look ahead along the momentum")
          .when(kName, {{"sgd", "false"}}),
  };
}

std::vector<Field> guard_fields() {
  return {
      LOCKSTEP_FIELD(
          train.guard.non_finite,
          "on a loss or gradient that is not finite: stop, skip the step, or rewind to the last checkpoint")
          .defaults_to("stop"),
      LOCKSTEP_FIELD(train.guard.max_skips,
                     "steps that may be skipped or rewound, together, before the run stops")
          .defaults_to("3")
          .at_least(0)
          .at_most(1e9),
      LOCKSTEP_FIELD(
          train.guard.spike_factor,
          "a loss or gradient norm above this many times its running median counts as bad; 0 looks for none")
          .defaults_to("0")
          .at_least(0),
      LOCKSTEP_FIELD(train.guard.spike_window, "steps of the running median")
          .defaults_to("50")
          .at_least(2)
          .at_most(1e6),
      LOCKSTEP_FIELD(train.guard.lr_cut, "a rewind multiplies the learning rate by this")
          .defaults_to("0.5")
          .above(0)
          .at_most(1),
  };
}

std::vector<Field> precision_fields() {
  return {
      LOCKSTEP_FIELD(
          train.precision,
          "of the model's arithmetic; with bf16, weights and sums stay fp32; with bf16_pure they are "
          "bf16 too, and updates are rounded by counted random bits; tf32: fp32 whose matrix products and "
          "convolutions round their operands to 10 bits, on NVIDIA GPUs")
          .defaults_to("fp32"),
      LOCKSTEP_FIELD(train.moments, "what the optimizer keeps for each weight")
          .when("train.precision", {{"bf16_pure", "fp32"}}),
      LOCKSTEP_FIELD(train.stochastic_rounding,
                     "round weights to bf16 by counted random bits instead of to nearest")
          .defaults_to("false"),
      LOCKSTEP_FIELD(train.clip_norm, "largest norm of the whole gradient; 0 does not clip")
          .defaults_to("0")
          .at_least(0),
      LOCKSTEP_FIELD(train.ema, "decay of a moving average of the weights, used in evaluation; 0 keeps none")
          .defaults_to("0")
          .at_least(0)
          .below(1),
  };
}

std::vector<Field> evaluation_fields() {
  return {
      LOCKSTEP_FIELD(
          train.class_weights,
          "how much the records of a label count in the loss, divided by their mean; balanced: by how "
          "rare the label is among the training records; labels that are not named count 1")
          .at_least(0)
          .example("{0: 1, 1: 20}")
          .or_else("all alike")
          .when("model.family", {{"tabular", ""}}),
      LOCKSTEP_FIELD(train.seed, "seed of the weights and of dropout").defaults_to("0").at_least(0),
      LOCKSTEP_FIELD(train.eval.every, "how often to evaluate")
          .above(0)
          .or_else("once, at the end")
          .example("500"),
      LOCKSTEP_FIELD(train.eval.metric, "what makes a checkpoint the best one").defaults_to("loss"),
      LOCKSTEP_FIELD(train.early_stop.patience,
                     "evaluations without progress before the run stops; 0 never stops")
          .defaults_to("0")
          .at_least(0)
          .at_most(1e9),
      LOCKSTEP_FIELD(train.early_stop.metric, "what has to progress").or_else("as train.eval.metric"),
      LOCKSTEP_FIELD(train.early_stop.min_delta, "smaller changes are not progress")
          .defaults_to("0")
          .at_least(0),
      LOCKSTEP_FIELD(
          train.recompute,
          "what to compute again in backward instead of keeping it; changes memory and time, not one bit")
          .defaults_to("none"),
      LOCKSTEP_FIELD(
          train.head_chunks,
          "in how many parts the rows of a microbatch go through the head and its loss, one after the "
          "other: the logits of one part are held instead of all; in it sums over rows are taken in "
          "parts, so it is part of what a run is")
          .defaults_to("1")
          .at_least(1),
  };
}

std::vector<Field> start_fields() {
  return {
      LOCKSTEP_FIELD(train.init_from.run,
                     "a trained run, or one of its checkpoints, whose weights this run starts from; also "
                     "written as init_from: PATH")
          .names_files()
          .or_else("none: weights are drawn")
          .example("runs/base"),
      LOCKSTEP_FIELD(train.init_from.only,
                     "parameters to take, by name with * and ?; the others are drawn as they would be")
          .or_else("all")
          .example("[\"bottom.*\", \"table.*\"]"),
      LOCKSTEP_FIELD(train.init_from.except, "parameters not to take, such as those of a new last layer")
          .or_else("none")
          .example("[\"top.2.*\"]"),
      LOCKSTEP_FIELD(train.freeze,
                     "parameters that are not trained, by name with * and ?; they keep the type in which the "
                     "model's files store them")
          .or_else("none")
          .example("[\"model.embed_tokens.*\"]"),
      LOCKSTEP_FIELD(train.train_only, "parameters that are trained; all others are frozen")
          .or_else("all")
          .example("[\"classifier.*\"]"),
  };
}

std::vector<Field> lora_fields() {
  return {
      LOCKSTEP_FIELD(train.lora.from,
                     "a folder with a PEFT adapter to start from, which also says rank, alpha and modules")
          .names_files()
          .or_else("none: B begins at 0")
          .example("./adapter"),
      LOCKSTEP_FIELD(train.lora.rank, "columns of the matrices that are trained beside frozen linear layers")
          .at_least(1)
          .at_most(1 << 16)
          .or_else("no LoRA")
          .example("16"),
      LOCKSTEP_FIELD(train.lora.alpha, "their product is scaled by alpha / rank")
          .above(0)
          .at_most(1e6)
          .defaults_to("16")
          .only_with("train.lora.rank"),
      LOCKSTEP_FIELD(train.lora.dropout, "probability of dropping an input of the matrices")
          .at_least(0)
          .below(1)
          .defaults_to("0")
          .only_with("train.lora.rank"),
      LOCKSTEP_FIELD(train.lora.modules,
                     "the layers, by name or the last part of it; all-linear: every one but the head")
          .defaults_to("[all-linear]")
          .only_with("train.lora.rank")
          .example("[q_proj, v_proj]"),
      LOCKSTEP_FIELD(train.lora.also_train,
                     "parameters that are trained as a whole beside the matrices, by name with * and ?")
          .or_else("those of a classification head")
          .example("[\"score.*\"]"),
      LOCKSTEP_FIELD(train.lora.rslora, "scale by alpha / sqrt(rank) instead")
          .defaults_to("false")
          .only_with("train.lora.rank"),
      LOCKSTEP_FIELD(train.lora.init,
                     "how A is drawn: uniform within 1 / sqrt(in), or gaussian with deviation 1 / rank")
          .defaults_to("uniform")
          .only_with("train.lora.rank"),
  };
}

}  // namespace lockstep
