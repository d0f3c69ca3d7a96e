"""The commands, one module each: parameters, computation, rows, text and figure.

Modules are loaded when their command is run, so that `opticoll --help` is there at once.
"""

__all__ = ["COMMANDS"]

COMMANDS = {
    "list": "List algorithms, fabrics, simulators, policies, collectives, wavelength assignments.",
    "plan": "Build a plan, verify it, and say what it needs and how long it takes.",
    "verify": "Prove a plan: data, order, links and wavelengths, claims. Exit code 1 if it is "
    "violated.",
    "simulate": "Say how long a plan takes: in all, on its critical path, per step, link, rank or "
    "in time.",
    "compare": "Compare algorithms on the same fabrics, sizes and policy; every plan is verified.",
    "show": "Show a plan: a slot's lightpaths or messages as text, or a picture with --figure.",
    "export": "Write a plan to a file for other programs: a plan file, or a table of transfers.",
    "reproduce": "Compute a paper's tables and figures anew, with a verdict on each number.",
    "congestion": "Carry out a collective over light paths that bursts beside it may refuse.",
    "replan": "Plan anew on what failures leave of a wss_grid; verify, and say how much longer it "
    "takes.",
    "tasks": "Run several tasks on one wss_grid: an arbiter admits each when its ports are free.",
    "replay": "Replay the trace of an MPI program: how long it takes over a network.",
    "traffic": "Send traffic over an electrical fabric, packet by packet: latencies, stalls, loads "
    "of links.",
    "train": "Time an iteration of data-parallel training: computing, and what it waits for.",
}
"""The module of each command, and what the command does; help lists them in this order."""
