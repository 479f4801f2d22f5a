"""The manifests under examples/shards start commands that there are."""

import argparse
import re
import shlex
from pathlib import Path

import pytest
import yaml

from ragforge.cli import shard

FOLDER = Path(__file__).parents[2] / "examples" / "shards"


def parsed(command):
    """Return what the command line makes of a line; what the shell knows is a number."""
    words = shlex.split(re.sub(r'"\$[A-Z_]+"', "0", command.removeprefix("exec ")))
    parser = argparse.ArgumentParser()
    shard.configure(parser)
    assert words[:2] == ["ragforge", "shard"]
    return parser.parse_args(words[1:][1:])


def test_the_slurm_script_runs_the_shard_of_its_task():
    """A wrong flag is found after hours in a queue."""
    command = (FOLDER / "slurm.sh").read_text("utf-8").splitlines()[-1]

    assert (parsed(command).action, parsed(command).index) == ("run", 0)


def test_the_kubernetes_job_runs_the_shard_of_its_index():
    """Likewise."""
    job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text("utf-8"))
    [container] = job["spec"]["template"]["spec"]["containers"]

    assert job["spec"]["completionMode"] == "Indexed"
    assert parsed(container["args"][0]).index == 0


@pytest.mark.parametrize("group", ["headGroupSpec", "workerGroupSpecs"])
def test_all_nodes_of_the_ray_cluster_see_the_folder(group):
    """A worker without it has nothing to do."""
    job = yaml.safe_load((FOLDER / "kuberay.yaml").read_text("utf-8"))
    found = job["spec"]["rayClusterSpec"][group]
    [container] = (found if group == "headGroupSpec" else found[0])["template"]["spec"][
        "containers"
    ]

    assert parsed(job["spec"]["entrypoint"]).on == "ray"
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/work"]
