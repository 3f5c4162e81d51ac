// What a job says about the step, in the terms of the parts that make it.
#pragma once
#include "job/resolve.h"
#include "prepare/host_share.h"
#include "prepare/job_parts.h"
#include "train/guard/diagnose.h"
#include "train/guard/guard.h"
#include "train/step/train_plans.h"

namespace lockstep {

PassOptions job_passes(const JobSpec& spec);
TrainOptions job_train_options(const JobSpec& spec, const ResolvedJob& job);
GuardSettings job_guard(const JobSpec& spec);
// What a diagnosis of a bad step knows of the job.
TroubleFacts job_facts(const JobParts& parts);
// Threads of a worker: what the job says, or its share of the host's processors.
int job_threads(const JobSpec& spec, const HostShare& host);
// The device that this worker computes on.
DeviceOptions job_device(const JobSpec& spec, const HostShare& host);
// The same, made ready to train on. Throws MissingDevice where the job's pools ask for accelerators, `device`
// leaves the choice open, and none is found.
std::unique_ptr<Backend> make_job_backend(const JobSpec& spec, const HostShare& host);
// What the job asks for, where nothing is one.
int64_t job_workers(const JobSpec& spec);
// How these are laid out. Throws UserError where they cannot be.
MeshShape job_mesh(const JobSpec& spec);

}  // namespace lockstep
