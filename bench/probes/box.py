"""Commands on the hosts of a cluster in a box (tests/hosts/hosts), as benches between hosts run them."""

import dataclasses

from harness import ROOT

HOSTS = ROOT / "tests" / "hosts" / "hosts"
PORT = 29500  # of host0, which nothing else uses


@dataclasses.dataclass(frozen=True)
class Links:
    """Every host's link to the switch, in both directions."""

    bits_per_second: float
    mtu: int = 1500

    def wire_seconds(self, hosts, size):
        """What an all-reduce takes at least: every host sends and receives 2(N-1)/N of the buffer."""
        return 2 * (hosts - 1) / hosts * size * 8 / self.bits_per_second

    def box(self, hosts, first_only=False, timeout=300, faster=0, times=1):
        """The beginning of a command line; the command to run on every host, or on the first, follows. The links of the last
        `faster` hosts have so many times the rate."""
        rates = [f"{self.bits_per_second * (times if h >= hosts - faster else 1):.0f}bit" for h in range(hosts)]
        shape = ["--rate", ",".join(rates), "--mtu", self.mtu]
        return [HOSTS, "--hosts", hosts, *shape, "--timeout", timeout, *(["--first"] if first_only else []), "--"]


def workers(hosts):
    """In front of a worker that finds its place in the environment, one on each host."""
    place = {"RANK": "{host}", "WORLD_SIZE": hosts, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "{master}"}
    place |= {"MASTER_PORT": PORT, "LOCKSTEP_TOKEN": "0123456789abcdef0123456789abcdef"}
    return ["env", *(f"{name}={value}" for name, value in place.items())]


def workers_and_servers(workers, program, command):
    """A command of every host: the first so many run `command` as workers, the others are Reduction Servers."""
    script = f"""
      if (({{host}} < {workers})); then exec env RANK={{host}} WORLD_SIZE={workers} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "$@"; fi
      exec "{program}" serve-reduce"""
    common = ["MASTER_ADDR={master}", f"MASTER_PORT={PORT}", "LOCKSTEP_TOKEN=0123456789abcdef0123456789abcdef"]
    return ["env", *common, "bash", "-c", script, "start", *command]


def mpirun(hosts, *options):
    """In front of an MPI program, a process on each host, over TCP."""
    names = ",".join(f"host{h}:1" for h in range(hosts))
    settings = {"plm_rsh_agent": f"{HOSTS} on", "pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": "eth0"}
    settings |= {"oob_tcp_if_include": "eth0"}
    command = ["mpirun", "--allow-run-as-root", "-np", hosts, "--host", names]
    return command + [part for one in settings.items() for part in ("--mca", *one)] + list(options)
