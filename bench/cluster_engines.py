"""Clusters of bench/cluster: start, score from Parquet to Parquet, fit, name a worker process, stop. Two worker processes at least."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

PORT = 18786


def stats():
    """What the system says about each process: fields of /proc/PID/stat after the name."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    return found


def cpu_seconds():
    """CPU time of this process and its descendants, also of those that have ended and were waited for."""
    found = stats()
    ticks = sum(int(ticks) for pid in [os.getpid(), *descendants()] if pid in found for ticks in found[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants():
    """Processes that this one has started, and theirs: their ids and command lines."""
    parents, lines = {pid: int(fields[1]) for pid, fields in stats().items()}, {}
    for pid in parents:
        with contextlib.suppress(OSError):
            lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")

    def ours(pid):
        while pid in parents:
            if pid == os.getpid():
                return True
            pid = parents[pid]
        return False

    return {pid: line for pid, line in lines.items() if pid != os.getpid() and ours(pid)}


class Dask:
    """LocalCluster; or a scheduler and a worker in each network namespace."""

    def __init__(self, workers, machines, folder):
        from distributed import Client, LocalCluster

        self.processes = []
        if machines:
            python, quiet = sys.executable, {"stdout": open(folder / "dask.log", "w"), "stderr": subprocess.STDOUT}
            address = f"tcp://{machines[0].address}:{PORT}"
            scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", machines[0].address, "--port", PORT, "--no-dashboard"]
            worker = ["-m", "distributed.cli.dask_worker", address, "--nthreads", 1, "--no-dashboard", "--host"]
            commands = [(machines[0], scheduler)] + [(machine, [*worker, machine.address]) for machine in machines]
            for machine, command in commands:
                self.processes.append(subprocess.Popen([*machine.inside, python, *map(str, command)], **quiet))
            self.cluster, self.client = None, Client(address, timeout=60)
            self.client.wait_for_workers(len(machines), timeout=60)
        else:
            self.cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
            self.client = Client(self.cluster)
        self.where = sorted(self.client.run(os.getpid).items())

    def score(self, rows, model, out):
        import dask.dataframe as dd

        import minvel.dask

        minvel.dask.score(dd.read_parquet(rows), model).to_parquet(out, write_index=False)

    def fit(self, rows, **parameters):
        import dask.dataframe as dd

        import minvel.dask

        return minvel.dask.fit(dd.read_parquet(rows, split_row_groups=False), **parameters)

    def victim(self):
        return sorted(self.client.run(os.getpid).items())[-1][1]  # of the second machine, where there are two

    def stop(self):
        self.client.close()
        if self.cluster:
            self.cluster.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)


class Ray:
    """A node with all workers."""

    def __init__(self, workers, machines, folder):
        if machines:
            raise NotImplementedError("network namespaces are for dask")
        import ray

        self.ray = ray
        ray.init(num_cpus=workers, object_store_memory=2**28, include_dashboard=False, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        self.where = [(node["NodeManagerAddress"], node["Resources"].get("CPU")) for node in ray.nodes() if node["Alive"]]

    def score(self, rows, model, out):
        import minvel.ray

        minvel.ray.score(self.ray.data.read_parquet(str(rows)), model).write_parquet(str(out))

    def fit(self, rows, **parameters):
        import minvel.ray

        return minvel.ray.fit(self.ray.data.read_parquet(str(rows)), **parameters)

    def victim(self):
        return next((pid for pid, line in descendants().items() if line.startswith("ray::") and "_score" in line), None)

    def stop(self):
        self.ray.shutdown()


class Spark:
    """local-cluster: a master, and executors with a JVM each."""

    def __init__(self, workers, machines, folder):
        if machines:
            raise NotImplementedError("network namespaces are for dask")
        import pyspark
        from pyspark.sql import SparkSession

        os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_LOCAL_IP": "127.0.0.1"}
        builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]").appName("minvel")
        settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                    "spark.executor.memory": "1g", "spark.local.dir": str(folder / "spark"), "spark.log.level": "ERROR",
                    "spark.sql.files.maxPartitionBytes": "4m", "spark.sql.files.openCostInBytes": "4m"}
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.where = []

    def score(self, rows, model, out):
        import minvel.spark

        minvel.spark.score(self.spark.read.parquet(str(rows)), model).write.mode("overwrite").parquet(str(out))
        self.where = [(f"executor {k + 1}", pid) for k, pid in enumerate(self.executors())]

    def fit(self, rows, **parameters):
        import minvel.spark

        return minvel.spark.fit(self.spark.read.parquet(str(rows)), **parameters)

    def executors(self):
        return sorted(pid for pid, line in descendants().items() if "CoarseGrainedExecutorBackend" in line and "java" in line.split()[0])

    def victim(self):
        return next(iter(self.executors()), None)

    def stop(self):
        self.spark.stop()


ENGINES = {"dask": Dask, "ray": Ray, "spark": Spark}
