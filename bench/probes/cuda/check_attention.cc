#include <cstdlib>

#include "backend/cuda/kernels/attention.h"

#ifdef LOCKSTEP_CUDNN_FRONTEND
#include "backend/cuda/cudnn/sdpa_plan.h"
#endif
#include "kernel_check.h"

namespace kernel_check {
namespace {

using namespace lockstep::cuda;

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct Case {
  DType dtype;
  int64_t B, T, S, H, Hkv, D;
  bool causal;
  int64_t window;
  bool keys, documents, packed;
};

struct Problem {
  AttentionShape s;
  Tensor q, k, v, dout, visible, documents;
  std::vector<double> out, lse, dq, dk, dv;
  void* kp;  // where k and v start, which may lie inside q
  void* vp;

  explicit Problem(const Case& c) {
    s.batch = c.B, s.queries = c.T, s.keys = c.S, s.heads = c.H, s.kv_heads = c.Hkv, s.head_dim = c.D;
    s.causal = c.causal, s.window = c.window, s.dtype = c.dtype;
    s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.D)));
    const int64_t width = (c.H + 2 * c.Hkv) * c.D;
    s.q = c.packed ? HeadLayout{c.T * width, width, c.D} : HeadLayout{c.T * c.H * c.D, c.H * c.D, c.D};
    s.k = s.v =
        c.packed ? HeadLayout{c.S * width, width, c.D} : HeadLayout{c.S * c.Hkv * c.D, c.Hkv * c.D, c.D};
    s.out = {c.T * c.H * c.D, c.H * c.D, c.D};
    q = random_tensor(c.dtype, c.packed ? c.B * c.T * width : c.B * c.T * c.H * c.D, 91, -1.5, 1.5);
    k = random_tensor(c.dtype, c.packed ? 1 : c.B * c.S * c.Hkv * c.D, 92, -1.5, 1.5);
    v = random_tensor(c.dtype, c.packed ? 1 : c.B * c.S * c.Hkv * c.D, 93, -1.5, 1.5);
    dout = random_tensor(c.dtype, c.B * c.T * c.H * c.D, 94);
    const int64_t bytes = lockstep::size_of(c.dtype);
    kp = c.packed ? static_cast<char*>(q.data()) + c.H * c.D * bytes : k.data();
    vp = c.packed ? static_cast<char*>(q.data()) + (c.H + c.Hkv) * c.D * bytes : v.data();
    Draw draw(95);
    if (c.keys) {
      std::vector<double> bits;
      for (int64_t i = 0; i < c.B * c.S; ++i) bits.push_back(draw.uniform() < 0.7 ? 1 : 0);
      visible = values(DType::kU8, bits);
      s.keys_visible = visible.device.as<uint8_t>();
    }
    if (c.documents) {
      std::vector<double> ids;
      for (int64_t i = 0; i < c.B * c.T; ++i) ids.push_back(static_cast<double>(i % c.T / 37));
      documents = values(DType::kI32, ids);
      s.documents = documents.device.as<int32_t>();
    }
    reference(c);
  }

  double key(const Case& c, int64_t i) const { return c.packed ? q[i + c.H * c.D] : k[i]; }
  double value(const Case& c, int64_t i) const { return c.packed ? q[i + (c.H + c.Hkv) * c.D] : v[i]; }

  void reference(const Case& c) {
    out.assign(at(dout.count()), 0);
    lse.assign(at(c.B * c.H * c.T), -INFINITY);
    dq.assign(at(q.count()), 0);
    dk.assign(at(k.count()), 0);
    dv.assign(at(v.count()), 0);
    const auto sees = [&](int64_t b, int64_t i, int64_t j) {
      const int64_t p = i + c.S - c.T;
      if ((c.causal || c.window > 0) && j > p) return false;
      if (c.window > 0 && j <= p - c.window) return false;
      if (c.keys && visible[b * c.S + j] == 0) return false;
      return !c.documents || documents[b * c.T + i] == documents[b * c.T + j];
    };
    for (int64_t b = 0; b < c.B; ++b)
      for (int64_t h = 0; h < c.H; ++h)
        for (int64_t i = 0; i < c.T; ++i) {
          const int64_t kv = h / (c.H / c.Hkv), qi = b * s.q.batch + i * s.q.row + h * s.q.head,
                        oi = b * s.out.batch + i * s.out.row + h * s.out.head;
          std::vector<double> p(at(c.S), 0.0);
          double sum = 0;
          for (int64_t j = 0; j < c.S; ++j) {
            if (!sees(b, i, j)) continue;
            const int64_t kj = b * s.k.batch + j * s.k.row + kv * s.k.head;
            double dot = 0;
            for (int64_t d = 0; d < c.D; ++d) dot += q[qi + d] * key(c, kj + d);
            sum += p[at(j)] = std::exp(dot * s.scale);
          }
          if (sum == 0) continue;
          lse[at((b * c.H + h) * c.T + i)] = std::log(sum);
          double delta = 0;
          for (int64_t j = 0; j < c.S; ++j) {
            p[at(j)] /= sum;
            const int64_t vj = b * s.v.batch + j * s.v.row + kv * s.v.head;
            for (int64_t d = 0; p[at(j)] > 0 && d < c.D; ++d) out[at(oi + d)] += p[at(j)] * value(c, vj + d);
          }
          for (int64_t d = 0; d < c.D; ++d) delta += dout[oi + d] * out[at(oi + d)];
          for (int64_t j = 0; j < c.S; ++j) {
            if (p[at(j)] == 0) continue;
            const int64_t kj = b * s.k.batch + j * s.k.row + kv * s.k.head,
                          vj = b * s.v.batch + j * s.v.row + kv * s.v.head;
            double dp = 0;
            for (int64_t d = 0; d < c.D; ++d) dp += dout[oi + d] * value(c, vj + d);
            const double ds = p[at(j)] * (dp - delta) * s.scale;
            for (int64_t d = 0; d < c.D; ++d) {
              dq[at(qi + d)] += ds * key(c, kj + d);
              (c.packed ? dq[at(kj + d + c.H * c.D)] : dk[at(kj + d)]) += ds * q[qi + d];
              (c.packed ? dq[at(vj + d + (c.H + c.Hkv) * c.D)] : dv[at(vj + d)]) += p[at(j)] * dout[oi + d];
            }
          }
        }
  }
};

std::string text(const Case& c) {
  std::string s = std::string(lockstep::name_of(c.dtype)) + " B" + std::to_string(c.B) + " T" +
                  std::to_string(c.T) + (c.S != c.T ? " S" + std::to_string(c.S) : "") + " H" +
                  std::to_string(c.H) + "/" + std::to_string(c.Hkv) + " D" + std::to_string(c.D);
  return s + (c.causal ? " causal" : "") + (c.window ? " window" : "") + (c.keys ? " keys" : "") +
         (c.documents ? " documents" : "") + (c.packed ? " packed" : "");
}

void run_case(Checks& c, const Case& k, bool library) {
  const Problem x(k);
  Tensor out = tensor(k.dtype, x.dout.count()), lse = tensor(DType::kF32, k.B * k.H * k.T);
  Tensor dq = tensor(k.dtype, x.q.count()), dk = tensor(k.dtype, x.k.count()),
         dv = tensor(k.dtype, x.v.count());
  const int64_t bytes = lockstep::size_of(k.dtype);
  void* const dkp = k.packed ? static_cast<char*>(dq.data()) + k.H * k.D * bytes : dk.data();
  void* const dvp = k.packed ? static_cast<char*>(dq.data()) + (k.H + k.Hkv) * k.D * bytes : dv.data();
  std::vector<Result> gradients{{&dq, &x.dq, "dq"}};
  if (!k.packed) gradients.insert(gradients.end(), {{&dk, &x.dk, "dk"}, {&dv, &x.dv, "dv"}});
  const double bound = k.dtype == DType::kF32 ? 2e-5 : k.dtype == DType::kBF16 ? 1e-2 : 2e-3;
  if (!library) {
    const std::string name =
        std::string(attention_on_tensor_cores(x.s) ? "attention tiled " : "attention plain ") + text(k);
    c.check(name, {{&out, &x.out, "out"}, {&lse, &x.lse, "lse"}}, bound,
            [&] { attention(c.stream, x.s, x.q.data(), x.kp, x.vp, out.data(), lse.f32()); });
    DeviceBuffer workspace(attention_grad_workspace(x.s));
    c.check(name + " grad", gradients, 2 * bound, [&] {
      attention(c.stream, x.s, x.q.data(), x.kp, x.vp, out.data(), lse.f32());
      attention_grad(c.stream, x.s, x.dout.data(), x.q.data(), x.kp, x.vp, out.data(), lse.f32(), dq.data(),
                     dkp, dvp, workspace.data());
    });
    return;
  }
#ifdef LOCKSTEP_CUDNN_FRONTEND
  static const cudnnHandle_t handle = make_cudnn_handle();
  set_cudnn_stream(handle, c.stream);
  const std::string name = "attention cudnn " + text(k);
  if (const std::string why = SdpaPlan::refusal(x.s); !why.empty())
    return c.expect(name + " refused", true, why);
  const SdpaPlan forward(handle, x.s, SdpaPlan::Direction::kForward),
      backward(handle, x.s, SdpaPlan::Direction::kBackward);
  DeviceBuffer workspace(std::max(forward.workspace_bytes(), backward.workspace_bytes()));
  c.check(name, {{&out, &x.out, "out"}, {&lse, &x.lse, "lse"}}, bound,
          [&] { forward.forward(handle, x.q.data(), x.kp, x.vp, out.data(), lse.f32(), workspace.data()); });
  c.check(name + " grad", gradients, 2 * bound, [&] {
    forward.forward(handle, x.q.data(), x.kp, x.vp, out.data(), lse.f32(), workspace.data());
    backward.backward(handle, x.dout.data(), x.q.data(), x.kp, x.vp, out.data(), lse.f32(), dq.data(), dkp,
                      dvp, workspace.data());
  });
#endif
}

}  // namespace

void check_attention(Checks& c) {
  for (const DType dtype : kFloating)
    for (const Case& k : {Case{dtype, 2, 100, 100, 4, 4, 64, true, 0, false, false, false},
                          Case{dtype, 1, 130, 130, 4, 2, 128, true, 0, false, false, true},
                          Case{dtype, 2, 70, 200, 2, 1, 40, true, 0, false, false, false},
                          Case{dtype, 1, 150, 150, 2, 2, 64, false, 0, true, false, false},
                          Case{dtype, 1, 190, 190, 4, 1, 80, true, 33, false, false, false},
                          Case{dtype, 2, 128, 128, 2, 2, 64, true, 0, false, true, true},
                          Case{dtype, 1, 40, 40, 2, 1, 33, true, 0, true, true, false},
                          Case{dtype, 1, 65, 65, 1, 1, 160, false, 0, false, false, false}})
      run_case(c, k, false);
  // Under a checker of memory accesses the library's kernels take minutes, and are not ours to mend.
  if (std::getenv("LOCKSTEP_KERNELS_ONLY") != nullptr) return;
  for (const DType dtype : {DType::kBF16, DType::kF16})
    for (const Case& k : {Case{dtype, 2, 256, 256, 4, 4, 64, true, 0, false, false, true},
                          Case{dtype, 1, 256, 256, 4, 2, 128, true, 0, false, false, true},
                          Case{dtype, 2, 128, 128, 4, 1, 64, false, 0, false, false, false},
                          Case{dtype, 1, 384, 384, 2, 2, 64, true, 100, false, false, true}}) {
      try {
        run_case(c, k, true);
      } catch (const std::exception& error) {
        c.expect("attention cudnn " + text(k), false, error.what());
      }
    }
}

}  // namespace kernel_check
