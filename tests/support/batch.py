"""Batch systems and remote shells that run everything on this machine: programs in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

JOB = "4711"

# What several of them need: one job is a group of processes, which is ended as a whole.
STARTED = """
import os, re, shutil, signal, subprocess, sys

def start(command, **env):
    job = subprocess.Popen(
        command, env={**os.environ, **env}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=open(HERE / "job.log", "a"), stderr=subprocess.STDOUT,
    )
    with open(HERE / "groups", "a") as out:
        print(job.pid, file=out)

def array(text, count, name):
    (HERE / "job").write_text(text)
    for i in range(int(count)):
        start(["sh", "-c", text], **{name: str(i + 1)})

def cancel(job):
    with open(HERE / "cancelled", "a") as out:
        print(job, file=out)
    for group in (HERE / "groups").read_text().split():
        try:
            os.killpg(int(group), signal.SIGKILL)
        except ProcessLookupError:
            pass
"""
SLURM = {
    "sbatch": """
text = open(sys.argv[-1]).read()
(HERE / "job").write_text(text)
count = re.search(r"--ntasks=(\\d+)", text)[1]
start(["sh", sys.argv[-1]], SLURM_JOB_ID=JOB, SLURM_NTASKS=count, SLURM_STEP_NUM_TASKS=count)
print("Submitted batch job", JOB)
""",
    "srun": """
started = [
    subprocess.Popen(sys.argv[1:], env={**os.environ, "SLURM_PROCID": str(i)})
    for i in range(int(os.environ["SLURM_NTASKS"]))
]
for process in started:
    process.wait()
""",
    "scancel": "cancel(sys.argv[-1])",
}
PBS = {
    "qsub": """
text = open(sys.argv[-1]).read()
array(text, re.search(r"#PBS -t 1-(\\d+)", text)[1], "PBS_ARRAYID")
print(JOB + "[].server")
""",
    "qdel": "cancel(sys.argv[-1])",
}
LSF = {
    "bsub": """
text = sys.stdin.read()
array(text, re.search(r"#BSUB -J ipengine\\[1-(\\d+)\\]", text)[1], "LSB_JOBINDEX")
print(f"Job <{JOB}> is submitted to default queue <normal>.")
""",
    "bkill": "cancel(sys.argv[-1])",
}
# As ssh does, words are joined and given to a shell.
SSH = {
    "ssh": """
with open(HERE / "hosts", "a") as out:
    print(sys.argv[1], file=out)
os.execvp("sh", ["sh", "-c", " ".join(sys.argv[2:])])
""",
    "scp": """
source, target = [text.partition(":")[2] or text for text in sys.argv[1:]]
home = os.path.expanduser("~")
source, target = os.path.join(home, source), os.path.join(home, target)
if source != target:
    shutil.copy(source, target)
""",
}
# One that takes no jobs.
REFUSING = {
    "sbatch": 'sys.exit("no partition is up")',
    "scancel": "cancel(sys.argv[-1])",
}
SYSTEMS = {"refusing": REFUSING, "slurm": SLURM, "pbs": PBS, "lsf": LSF, "ssh": SSH}


def install(folder: Path, system: str) -> None:
    """Write the programs of a system into `folder`, where they also leave what they were told."""
    for name, body in SYSTEMS[system].items():
        head = f"#!{sys.executable}\nfrom pathlib import Path\n"
        known = f"HERE, JOB = Path({str(folder)!r}), {JOB!r}\n"
        program = folder / name
        program.write_text(head + known + STARTED + body)
        program.chmod(0o755)
