"""A Slurm cluster of one machine, in a temporary folder: munged, slurmctld and slurmd in the foreground, stopped again by
their process objects. Needs root, as slurmd does to start tasks.
"""

import ctypes
import os
import pathlib
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
TASKS = 8  # as many as may run at a time, on however many processors there are

CONFIGURATION = """\
ClusterName=lockstep
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={tasks} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP MaxTime=10
"""


def missing():
    """Why there can be no cluster here; empty if there can."""
    absent = [name for name in PROGRAMS if not find(name)]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "slurmd needs root to start tasks"


def find(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def adopt_orphans():
    """slurmd lets go of the processes that start its tasks; whoever adopts them must wait for them."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def bury_orphans():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Up between enter and exit; `environment` is what srun needs."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = []

    def __enter__(self):
        adopt_orphans()
        self.folder.mkdir()
        self.folder.chmod(0o755)
        for name in ("state", "spool", "cgroup"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        controller, daemon = free_ports(2)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=host, controller=controller, daemon=daemon, folder=self.folder, tasks=TASKS))
        # Nothing here uses control groups, but slurmd insists on a version and a place for them.
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={self.folder}/cgroup\n")
        try:
            # --force: it would rather not have a socket under a folder that all can write to.
            self.start("munged", "--foreground", "--force", "--num-threads=1",
                       *(f"--{name}={self.folder}/munge.{end}" for name, end in
                         (("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"),
                          ("seed-file", "seed"))))
            self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged listens")
            self.start("slurmctld", "-D", "-i")
            self.start("slurmd", "-D", "-N", host)
            self.wait_for(self.is_idle, "the node is idle")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        bury_orphans()

    def start(self, program, *arguments):
        out = open(self.folder / f"{program}.out", "w")
        self.daemons.append(subprocess.Popen([find(program), *arguments], env=self.environment, stdout=out,
                                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))

    def is_idle(self):
        state = subprocess.run([find("sinfo"), "-h", "-o", "%t"], env=self.environment, capture_output=True,
                               text=True)
        return state.stdout.strip() == "idle"

    def wait_for(self, holds, what):
        until = time.monotonic() + 60
        while not holds():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > until:
                logs = "\n".join(path.read_text(errors="replace")[-2000:]
                                 for path in sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log")))
                raise RuntimeError(f"waited for: {what}; ended: {ended}\n{logs}")
            time.sleep(0.1)
