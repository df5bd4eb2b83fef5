"""A batch system that runs its jobs on this machine: `sbatch`, `srun` and `scancel` in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

JOB = "4711"

SBATCH = """
import os, re, subprocess, sys
text = open(sys.argv[-1]).read()
(HERE / "job").write_text(text)
count = re.search(r"--ntasks=(\\d+)", text)[1]
env = {**os.environ, "SLURM_JOB_ID": JOB, "SLURM_NTASKS": count, "SLURM_STEP_NUM_TASKS": count}
job = subprocess.Popen(
    ["sh", sys.argv[-1]], env=env, start_new_session=True,
    stdin=subprocess.DEVNULL, stdout=open(HERE / "log", "a"), stderr=subprocess.STDOUT,
)
(HERE / "group").write_text(str(job.pid))
print("Submitted batch job", JOB)
"""
SRUN = """
import os, subprocess, sys
started = [
    subprocess.Popen(sys.argv[1:], env={**os.environ, "SLURM_PROCID": str(i)})
    for i in range(int(os.environ["SLURM_NTASKS"]))
]
for process in started:
    process.wait()
"""
SCANCEL = """
import os, signal, sys
with open(HERE / "cancelled", "a") as out:
    print(*sys.argv[1:], file=out)
try:
    os.killpg(int((HERE / "group").read_text()), signal.SIGKILL)
except ProcessLookupError:
    pass
"""


def install(folder: Path) -> None:
    """Write the three programs into `folder`, where they also leave what they were told."""
    for name, body in (("sbatch", SBATCH), ("srun", SRUN), ("scancel", SCANCEL)):
        head = f"#!{sys.executable}\nfrom pathlib import Path\n"
        known = f"HERE, JOB = Path({str(folder)!r}), {JOB!r}\n"
        program = folder / name
        program.write_text(head + known + body)
        program.chmod(0o755)
