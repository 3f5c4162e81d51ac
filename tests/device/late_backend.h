// A device that is as late as it may be: kernels of the CPU, run on other threads, and not before somebody
// waits for them; its memory has addresses at which the host faults.
//
// What trains on it to the CPU's bits reads no device memory behind the backend's back, reuses nothing that
// work in a queue still needs, and waits for what it reads.
#pragma once
#include <memory>

#include "backend/backend.h"

namespace lockstep::testing {

std::unique_ptr<Backend> make_late_backend(int threads);
// `fails_at`: the kernel, of all that run, counted from 1, at which the device fails; from then on nothing
// runs, and whoever waits is told.
std::unique_ptr<Backend> make_failing_late_backend(int threads, int64_t fails_at);
// One whose memory other workers of the host reach (backend/device_sharing.h).
std::unique_ptr<Backend> make_sharing_late_backend(int threads);
// One that also sends to devices of other threads (backend/device_messages.h), until an exchange that fails.
std::unique_ptr<Backend> make_sending_late_backend(int threads, int64_t fails_at = 0);

}  // namespace lockstep::testing
