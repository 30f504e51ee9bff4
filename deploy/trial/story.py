"""The main job, in six acts."""

import json
import subprocess
import threading
import time
from pathlib import Path

from common.paths import Paths
from deploy.trial import network
from deploy.trial.counter import Counter
from deploy.trial.machine import Machine, alive, command_line, wait_until
from deploy.trial.place import CHECKOUT, CLUSTER, KERNEL, Place
from deploy.trial.transcript import Transcript

BOOT_S = 60.0  # for a guest without KVM on a busy machine


class Story:
    """Plays on three machines; each act checks what it promises."""

    def __init__(self, place: Place, transcript: Transcript) -> None:
        self.place, self.told = place, transcript
        self.machines = [Machine(spot, transcript) for spot in place.spots]
        self.alpha, self.beta, self.gamma = self.machines
        self.by_name = {machine.name: machine for machine in self.machines}

    def prepare(self) -> None:
        """Make namespaces and the guest's kernel."""
        self.told.act("Three machines on this one, each with a network and a directory of its own")
        self.place.shared.mkdir(parents=True)
        network.build(self.place)
        builder = CHECKOUT / "deploy" / "guest" / "build"
        subprocess.run(
            [builder, "--kernel-root", KERNEL, self.place.guest], check=True, capture_output=True
        )
        for spot in self.place.spots:
            rules = Paths(str(spot.root)).guest_rules
            rules.parent.mkdir(parents=True)
            rules.write_text(f"image {self.place.guest}\n")
            self.told.say(f"{spot.name}: {spot.address}, everything below {spot.root}")

    def form_cluster(self) -> None:
        self.told.act("1. A cluster of three nodes")
        for machine in self.machines:
            machine.start_noded()
        self.alpha.type(
            f"gnt-cluster init --node-name alpha --address {self.alpha.spot.address} "
            f"--shared-file-storage-dir {self.place.shared} "
            f"-H kvm:migration_bandwidth=4096 {CLUSTER}"
        )
        for machine in (self.beta, self.gamma):
            token = machine.type("gantry join-token")
            self.alpha.type(
                f"gnt-node add --address {machine.spot.address} --token-file - {machine.name}",
                stdin=token,
            )
        listing = self.alpha.type("gnt-node list -o name,role,pip,mtotal,mfree,ctotal")
        self.told.check(
            all(machine.name in listing for machine in self.machines), "three nodes have joined"
        )

    def place_guest(self) -> None:
        self.told.act("2. An instance: placed by the allocator, booted for real")
        self.alpha.type(self._add("web1"))
        self.web1 = self._instance("web1")
        self.told.check(self.web1["status"] == "running", f"web1 runs on {self.web1['pnode']}")
        logs = [self._directory(m, "web1") / "serial.log" for m in self.machines]
        self.counter = Counter(logs)
        wait_until(lambda: self.counter.last > 3, "the guest to count", BOOT_S)
        self.told.good(f"Linux boots in it and counts: it is at {self.counter.last}")

    def move_guest(self) -> None:
        self.told.act("3. Looking at it, and moving it while it runs")
        self.alpha.type("gnt-instance list")
        self.alpha.type("gnt-instance info web1")
        console = self.alpha.type("gnt-instance console --seconds 2 web1")
        self.told.check("count" in console, "the console shows the guest counting")
        # Not to the master: that one will lose its power.
        target = "gamma" if self.web1["pnode"] == "beta" else "beta"
        start = time.monotonic()
        self.alpha.type(f"gnt-instance migrate --force -n {target} web1")
        reached = self.counter.last
        wait_until(lambda: self.counter.last > reached + 3, "the guest to go on counting")
        self.told.check(
            self.counter.went_on(),
            f"the counter went on over there ({self.counter.last}); longest gap "
            f"{self.counter.gap_since(start):.2f} s",
        )
        self.told.check(self._instance("web1")["pnode"] == target, f"web1 is on {target} now")

    def crash_coordinator(self) -> None:
        self.told.act("4. kill -9 of the coordinator in the middle of a job")
        self.told.command("alpha", self._add("web2"))
        said: list[str] = []
        start = time.monotonic()

        def add() -> None:
            done = self.alpha.run(self._add("web2"))
            said.append(done.stdout + done.stderr)

        adding = threading.Thread(target=add)
        adding.start()
        wait_until(self._is_adding_web2, "the job to be half done", 20)
        killed = self.alpha.kill("gantry-coordinator")
        self.told.check(killed > 0, "killed the coordinator while the job ran")
        self.told.say("systemd would start it again; here the demonstration does")
        self._start_coordinator(self.alpha)
        adding.join()
        self.told.say("and the command, which had waited, says:")
        self.told.output(said[0], time.monotonic() - start)
        job = self._job_of("web2")
        self.alpha.type(f"gnt-job watch {job}")
        status = self._job(job)["status"]
        self.told.check(status in ("success", "error"), f"the job ended after all: {status}")
        exists = any(i["name"] == "web2" for i in self._instances(self.alpha))
        self.told.check(exists == (status == "success"), "and so did the instance")
        if exists:
            self.alpha.type("gnt-instance remove --force --shutdown-timeout 0 web2")
        disks = list(self.place.shared.rglob("*.raw"))
        guests = [p for m in self.machines for p in self._guests(m)]
        taps = [tap for machine in self.machines for tap in network.taps(machine.spot)]
        self.told.check(
            (len(disks), len(guests), len(taps)) == (1, 1, 1),
            "nothing is left over: one disk, one guest, one tap",
        )
        locks = self.alpha.type("gnt-debug locks --no-headers")
        self.told.check(not locks.strip(), "and no lock")

    def fail_over_master(self) -> None:
        self.told.act("5. The master node loses its power")
        start = time.monotonic()
        self.told.say(f"alpha: kill -9 of everything ({self.alpha.power_off()} processes)")
        command_at = time.monotonic()
        self.beta.type("gnt-cluster master-failover")
        self.told.say(f"{time.monotonic() - command_at:.2f} s after the command was given")
        listing = self.beta.type("gnt-instance list")
        self.told.check("web1" in listing, "the new master knows web1")
        jobs = self.beta.type("gnt-job list")
        self.told.check("INSTANCE_CREATE(web1)" in jobs, "and all jobs")
        reached = self.counter.last
        wait_until(lambda: self.counter.last > reached, "the guest to go on counting")
        self.told.check(
            self.counter.went_on() and self.counter.gap_since(start) < 5,
            f"the guest never stopped: it is at {self.counter.last}, longest gap "
            f"{self.counter.gap_since(start):.2f} s",
        )
        self.told.say("alpha comes back, and believes to be the master still:")
        self.alpha.start_noded()
        text = self.alpha.type("gantry-coordinator", fails=True)
        self.told.check("beta" in text, "the old master finds itself deposed, and says by whom")
        text = self.alpha.type(
            f"python -m deploy.trial.outdated_order {self.gamma.spot.address} gamma", fails=True
        )
        self.told.check("epoch" in text, "a call of its old epoch is refused by gamma")

    def end(self) -> None:
        self.told.act("6. Everything in order; then the end")
        wait_until(
            lambda: self.beta.run("gnt-cluster verify").returncode == 0,
            "alpha to catch up with what it missed",
            15,
        )
        text = self.beta.type("gnt-cluster verify")
        self.told.check("ERROR" not in text and "WARNING" not in text, "verify is clean")
        self.counter.stop()
        self.beta.type("gnt-instance remove --force --shutdown-timeout 10 web1")
        self.beta.type("gnt-cluster destroy --yes-do-it")
        for machine in self.machines:
            machine.kill("gantry-noded")
        self._check_nothing_left()

    def show_logs(self) -> None:
        """Print the end of each daemon's log: something went wrong."""
        for machine in self.machines:
            for log in sorted((machine.spot.root / "var" / "log" / "gantry").glob("*")):
                self.told.say(f"{log}:")
                self.told.output("\n".join(log.read_text(errors="replace").splitlines()[-15:]), 0)

    def clear(self) -> None:
        """Kill and delete whatever there is; harmless if nothing is."""
        for machine in self.machines:
            machine.power_off()
        network.tear_down(self.place)
        if self.place.base.exists():
            subprocess.run(["rm", "-rf", "--", self.place.base], check=True)

    def _check_nothing_left(self) -> None:
        processes = [
            f"{pid} {command_line(pid)}"
            for machine in self.machines
            for pid in network.processes(machine.spot)
            if alive(pid)
        ]
        taps = [tap for machine in self.machines for tap in network.taps(machine.spot)]
        disks = [str(path) for path in self.place.shared.rglob("*") if path.is_file()]
        members = [
            str(path)
            for machine in self.machines
            for path in (machine.spot.root / "var" / "lib" / "gantry").rglob("*")
            if path.name in ("state.sqlite", "membership.json", "mastership.json")
        ]
        self.clear()
        spaces = network.left_over(self.place)
        left = [*processes, *taps, *disks, *members, *spaces]
        self.told.check(
            not left,
            f"no process, file, tap or namespace is left{': ' if left else ''}" + "; ".join(left),
        )

    def _add(self, name: str) -> str:
        guest = self.place.guest
        return (
            f"gnt-instance add -t sharedfile --disk 0:size=64M --iallocator hail "
            f"-B memory=160,vcpus=1 --net 0:link=br0 "
            f"-H kvm:kernel_path={guest}/vmlinuz,initrd_path={guest}/initrd,"
            f"kernel_args=console=ttyS0 --no-install {name}"
        )

    def _start_coordinator(self, machine: Machine) -> None:
        machine.begin("gantry-coordinator", log="coordinator.log")
        wait_until(
            lambda: (
                machine.run("gnt-cluster getmaster").returncode == 0
                and machine.run("gnt-job list").returncode == 0
            ),
            "the coordinator",
        )

    def _is_adding_web2(self) -> bool:
        """Tell whether its disk is there: asking for the job would take longer than the rest."""
        return len(list(self.place.shared.rglob("*.raw"))) > 1

    def _job_of(self, instance: str) -> int:
        jobs = json.loads(self.alpha.run("gnt-job list --json").stdout)
        return next(int(job["id"]) for job in jobs if instance in str(job["summary"]))

    def _job(self, number: int) -> dict[str, str]:
        jobs = json.loads(self.alpha.run("gnt-job list --json").stdout)
        return next(job for job in jobs if int(job["id"]) == number)

    def _instances(self, machine: Machine) -> list[dict[str, str]]:
        text = machine.run("gnt-instance list --json -o name,uuid,pnode,status").stdout
        listing: list[dict[str, str]] = json.loads(text)
        return listing

    def _instance(self, name: str) -> dict[str, str]:
        return next(i for i in self._instances(self.alpha) if i["name"] == name)

    def _directory(self, machine: Machine, name: str) -> Path:
        run = machine.spot.root / "run" / "gantry" / "instances"
        return run / self._instance(name)["uuid"]

    def _guests(self, machine: Machine) -> list[int]:
        pids = network.processes(machine.spot)
        return [pid for pid in pids if "qemu-system" in command_line(pid)]
