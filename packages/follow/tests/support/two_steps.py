"""A program that follows for two steps and says whether it imported Beam."""

from __future__ import annotations

PROGRAM = """
import os, signal, sys, threading
from uldp_transforms_follow import follower
from uldp_transforms.jobs.uldp import main

step = follower.Follower.step

def step_and_stop(self):
    step(self)
    step(self)
    os.kill(os.getpid(), signal.SIGTERM)

follower.Follower.step = step_and_stop
code = main(["estimate", *sys.argv[1:]])
print(code, "apache_beam" in sys.modules)
"""
