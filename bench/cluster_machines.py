"""Two machines simulated by network namespaces, joined by a virtual cable, with an address each; removed at the end."""

import json
import os
import subprocess
from dataclasses import asdict, dataclass

from environment import Missing

NETWORK = "10.77.0"  # seen inside the namespaces only


@dataclass(frozen=True)
class Machine:
    name: str
    address: str

    @property
    def inside(self):
        """Words before a command that is to run there."""
        return ["ip", "netns", "exec", self.name]


class Machines:
    """A context in which there are so many machines."""

    def __init__(self, number):
        assert number == 2, "a cable has two ends"
        self.all = [Machine(f"minvel-{os.getpid()}-{k + 1}", f"{NETWORK}.{k + 1}") for k in range(number)]

    def __enter__(self):
        try:
            ends = [f"mv{os.getpid()}{end}" for end in "ab"]
            for machine in self.all:
                ip("netns", "add", machine.name)
            ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for machine, end in zip(self.all, ends):
                ip("link", "set", end, "netns", machine.name)
                within = ["-n", machine.name]
                ip(*within, "addr", "add", f"{machine.address}/24", "dev", end)
                ip(*within, "link", "set", end, "up")
                ip(*within, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for machine in self.all:  # the cable goes with its ends
            subprocess.run(["ip", "netns", "del", machine.name], capture_output=True)

    def text(self):
        return json.dumps([asdict(machine) for machine in self.all])

    @staticmethod
    def of_text(text):
        return [Machine(**machine) for machine in json.loads(text)]


def ip(*words):
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
    except FileNotFoundError as why:
        raise Missing("network namespaces need the program `ip` (iproute2)") from why
    if done.returncode:
        raise Missing(f"`ip {' '.join(words)}` failed, network namespaces need root: {done.stderr.strip()}")
