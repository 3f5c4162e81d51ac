#include "launch/environment.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kVertex =
    R"({"cluster": {"workerpool0": ["chief:2222"], "workerpool1": ["w0:2222", "w1:2222"], "workerpool2": ["r0:2222"]},
        "task": {"type": "workerpool1", "index": 1, "trial": "x"}, "environment": "cloud"})";
constexpr const char* kTf =
    R"({"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "b:2223"]}, "task": {"type": "worker", "index": "1"}})";

// rank/size local_rank/local_size host master family
std::string text(const std::optional<WorkerPlace>& p) {
  if (!p) return "none";
  return fmt::format("{}/{} {}/{} '{}' {}:{} {}", p->rank, p->size, p->local_rank, p->local_size, p->host,
                     p->master_addr, p->master_port, p->family);
}

std::string error_of(const Variables& variables) {
  try {
    return "no error: " + text(placement_from(variables));
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Environment, NobodyStartedIt) {
  EXPECT_EQ(text(placement_from({})), "none");
  EXPECT_EQ(text(placement_from({{"HOME", "/root"}, {"MASTER_PORT", "1234"}, {"RANK", ""}})), "none");
}

TEST(Environment, Torchrun) {
  Variables v = {{"RANK", "5"},       {"WORLD_SIZE", "8"},    {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                 {"GROUP_RANK", "1"}, {"MASTER_ADDR", "gpu1"}};
  EXPECT_EQ(text(placement_from(v)), "5/8 1/4 '' gpu1:29500 torchrun");
  v["MASTER_PORT"] = "4000";
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(text(placement_from(v)), "5/8 1/4 '' gpu1:4001 torchrun");
  EXPECT_EQ(text(placement_from({{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
            "0/1 0/1 '' 127.0.0.1:29500 torchrun");
}

TEST(Environment, Mpi) {
  EXPECT_EQ(text(placement_from({{"OMPI_COMM_WORLD_RANK", "2"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                 {"PMIX_RANK", "2"}})),
            "2/4 2/4 '' 127.0.0.1:29500 OpenMPI");
  EXPECT_EQ(text(placement_from({{"PMI_RANK", "1"},
                                 {"PMI_SIZE", "2"},
                                 {"MPI_LOCALRANKID", "0"},
                                 {"MPI_LOCALNRANKS", "1"},
                                 {"MASTER_ADDR", "10.0.0.1"},
                                 {"MASTER_PORT", "81"}})),
            "1/2 0/1 '' 10.0.0.1:81 MPICH");
  EXPECT_EQ(text(placement_from({{"MV2_COMM_WORLD_RANK", "0"},
                                 {"MV2_COMM_WORLD_SIZE", "2"},
                                 {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                 {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}})),
            "0/2 0/2 '' 127.0.0.1:29500 MVAPICH");
}

TEST(Environment, TwoMpiJobsOnOneHostGetPortsOfTheirOwn) {
  Variables v = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_NAMESPACE", "100@1"}};
  const int64_t one = placement_from(v)->master_port;
  v["PMIX_NAMESPACE"] = "100@2";
  EXPECT_NE(placement_from(v)->master_port, one);
  EXPECT_GE(one, 20000);
  EXPECT_LT(one, 30000);
}

Variables slurm() {
  return {{"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "6"},
          {"SLURM_NTASKS", "7"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "2"},
          {"SLURM_NNODES", "3"},
          {"SLURM_JOB_ID", "417"},
          {"MASTER_PORT", "9"},
          {"SLURM_TASKS_PER_NODE", "3,2(x2)"},
          {"SLURM_JOB_NODELIST", "gpu[009-010],login1"}};
}

TEST(Environment, Slurm) {
  EXPECT_EQ(text(placement_from(slurm())), "6/7 1/2 'login1' gpu009:9 Slurm");
  Variables one_host = {{"SLURM_STEP_ID", "1"},
                        {"SLURM_PROCID", "3"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_LOCALID", "3"},
                        {"MASTER_PORT", "9"}};
  EXPECT_EQ(text(placement_from(one_host)), "3/4 3/4 '' 127.0.0.1:9 Slurm");
}

TEST(Environment, ABatchScriptOfSlurmIsNoTask) {
  Variables v = slurm();
  v.erase("SLURM_STEP_ID");
  EXPECT_EQ(text(placement_from(v)), "none");
  v["SLURM_STEP_ID"] = "4294967291";
  EXPECT_EQ(text(placement_from(v)), "none");
}

TEST(Environment, ClusterSpecifications) {
  EXPECT_EQ(text(placement_from({{"CLUSTER_SPEC", kVertex}})), "2/3 0/1 'w1' chief:2222 Vertex AI");
  EXPECT_EQ(text(placement_from({{"TF_CONFIG", kTf}})), "2/3 1/2 'b' a:2222 TensorFlow");
  EXPECT_EQ(text(placement_from({{"CLUSTER_SPEC", kVertex}, {"TF_CONFIG", kTf}})),
            "2/3 0/1 'w1' chief:2222 Vertex AI");
  EXPECT_EQ(text(placement_from({{"TF_CONFIG", R"({"environment": "cloud"})"}})), "none");
}

TEST(Environment, ALauncherInsideAnotherCountsTheWorkers) {
  // srun starts one torchrun on each of 2 hosts, which starts 4 workers.
  Variables v = {{"SLURM_STEP_ID", "0"},
                 {"SLURM_PROCID", "1"},
                 {"SLURM_NTASKS", "2"},
                 {"SLURM_NNODES", "2"},
                 {"SLURM_NODEID", "1"},
                 {"SLURM_JOB_NODELIST", "gpu[1-2]"},
                 {"RANK", "3"},
                 {"WORLD_SIZE", "8"},
                 {"LOCAL_RANK", "3"},
                 {"MASTER_ADDR", "x"},
                 {"SLURM_TASKS_PER_NODE", "1(x2)"},
                 {"LOCAL_WORLD_SIZE", "4"}};
  EXPECT_EQ(text(placement_from(v)), "3/8 3/4 '' x:29500 torchrun");
  // On Vertex a replica is a host.
  v = {{"CLUSTER_SPEC",
        R"({"cluster": {"workerpool0": ["h:2222"]}, "task": {"type": "workerpool0", "index": 0}})"},
       {"RANK", "1"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "1"},
       {"LOCAL_WORLD_SIZE", "4"}};
  EXPECT_EQ(text(placement_from(v)), "1/4 1/4 '' 127.0.0.1:29500 torchrun");
}

TEST(Environment, FamiliesThatDisagreeAreBothPrinted) {
  Variables v = slurm();
  v["RANK"] = "0";
  v["WORLD_SIZE"] = "7";
  v["MASTER_ADDR"] = "h";
  EXPECT_EQ(
      error_of(v),
      "the environment places this process twice: torchrun (RANK=0 WORLD_SIZE=7) says worker 0 of 7, but "
      "Slurm (SLURM_PROCID=6 SLURM_NTASKS=7) says worker 6 of 7; unset the variables of the one that did "
      "not start it");
  v["WORLD_SIZE"] = "1";
  EXPECT_EQ(
      error_of(v),
      "the environment places this process twice: torchrun (RANK=0 WORLD_SIZE=1) says worker 0 of 1, but "
      "Slurm (SLURM_PROCID=6 SLURM_NTASKS=7) says worker 6 of 7; unset the variables of the one that did "
      "not start it");
}

struct BadCase {
  Variables variables;
  std::string error;
};

TEST(Environment, MalformedVariablesAreNamed) {
  const BadCase cases[] = {
      {{{"RANK", "0"}},
       "RANK is set but WORLD_SIZE is not; set WORLD_SIZE to a whole number from 1 to 65536, or "
       "unset RANK"},
      {{{"RANK", "x1"}, {"WORLD_SIZE", "2"}},
       "RANK='x1' is not a whole number from 0 to 1; set it to one or unset it"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}},
       "RANK='2' is not a whole number from 0 to 1; set it to one or unset it"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
       "torchrun (RANK=0 WORLD_SIZE=2) says worker 0 of 2, 1 of them on this host, but nothing says where "
       "worker "
       "0 is; set MASTER_ADDR to its host's name or address on all of them"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "70000"}},
       "MASTER_PORT='70000' is not a whole number from 1 to 65535; set it to one or unset it"},
      {{{"PMIX_RANK", "1"}},
       "PMIX_RANK='1' says that a launcher started this process as one of several, but not of how many; set "
       "RANK "
       "and WORLD_SIZE, or use a launcher that does (mpirun, srun, torchrun)"},
      {{{"TF_CONFIG", "{"}},
       R"(TF_CONFIG: '{' is not JSON; it should read like {"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}})"},
      {{{"TF_CONFIG", R"({"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}})"}},
       "TF_CONFIG: cluster.worker: 'a' is not host:port; write it like gpu1:2222 or [fe80::1]:2222"},
      {{{"TF_CONFIG",
         R"({"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}})"}},
       "TF_CONFIG: this process is 'ps' 0, a role that does not train; start Lockstep in chief, master, "
       "worker only"},
  };
  for (const BadCase& bad : cases) EXPECT_EQ(error_of(bad.variables), bad.error);
}

TEST(Environment, WorkersPerProcess) {
  const WorkerPlace hosts = {.family = "Slurm", .said = "S=0", .rank = 0, .size = 2};
  EXPECT_EQ(workers_per_process(hosts, 2), 1);
  EXPECT_EQ(workers_per_process(hosts, 8), 4);
  EXPECT_THROW(workers_per_process(hosts, 3), UserError);
  EXPECT_THROW(workers_per_process(hosts, 1), UserError);
  const WorkerPlace workers = {.family = "torchrun", .said = "R=0", .rank = 0, .size = 2, .local_size = 2};
  EXPECT_EQ(workers_per_process(workers, 2), 1);
  EXPECT_THROW(workers_per_process(workers, 4), UserError);
}

}  // namespace
}  // namespace lockstep
