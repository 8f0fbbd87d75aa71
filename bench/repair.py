"""Whitening 1M × 768 vectors of a file, fit and apply, against scikit-learn's PCA in memory.

    python bench/repair.py [--small] [--threads N]

Ours maps the file and walks over it twice; scikit-learn has the array in memory before the clock starts:
`PCA(128, whiten=True, svd_solver="covariance_eigh")`, fit and transform. Both leave 128 dimensions of every
vector in memory. Each runs in a process of its own, by turns, three times, after a small run for what is
loaded once; the best time counts. On one thread unless told: where others want the cores, threads wait for
each other and an eigendecomposition of .1 s takes 10. Memory is the peak of anonymous pages (RssAnon), Python
and torch among them. What does not whiten, or has other variances than the covariance in float64, is not
timed. Writes bench/results/repair-cpu.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROWS, SMALL, WIDTH, KEPT, TURNS = 1_000_000, 60_000, 768, 128, 3
ALLOWED = 1.5  # GB
RESULTS = Path(__file__).parent / "results"


def make(file: Path, rows: int) -> None:
    """Vectors about a common mean whose variances fall as 1/j over random directions, as embeddings' do."""
    random = np.random.default_rng(0)
    turned = np.linalg.qr(random.standard_normal((WIDTH, WIDTH)))[0]
    spread = (np.arange(1, WIDTH + 1)[:, None] ** -0.5 * turned).astype(np.float32)
    mean = random.standard_normal(WIDTH, dtype=np.float32) / WIDTH**0.5
    vectors = np.lib.format.open_memmap(file, "w+", np.float32, (rows, WIDTH))
    for start in range(0, rows, 20_000):
        part = vectors[start : start + 20_000]
        part[:] = random.standard_normal((len(part), WIDTH), dtype=np.float32) @ spread + mean
    vectors.flush()


def anonymous() -> float:
    """GB of memory that no file stands behind."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024 / 1e9


class Peak:
    """The most memory while inside, looked at every 50 ms."""

    def __enter__(self) -> Peak:
        self.most, self._over = anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, anonymous())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def few() -> np.ndarray:
    """Vectors for the first run, which loads what is loaded once."""
    return np.random.default_rng(1).standard_normal((8192, WIDTH), dtype=np.float32)


def ours(file: Path, out: Path) -> dict[str, object]:
    from isoscope.repair.fit.transforms import fit
    from isoscope.repair.vectors import open_vectors

    fit(f"whiten:{KEPT}", few()).apply(few())
    with Peak() as peak:
        start = time.perf_counter()
        vectors, _ = open_vectors(file)
        repair = fit(f"whiten:{KEPT}", vectors)
        fitted = time.perf_counter()
        moved = repair.apply(vectors)
        end = time.perf_counter()
    np.save(out, moved)
    matrix = repair.affine()[0]
    variance = (matrix.norm(dim=1) ** -2).tolist()
    return {"fit": fitted - start, "apply": end - fitted, "memory": peak.most, "variance": variance}


def theirs(file: Path, out: Path) -> dict[str, object]:
    from sklearn.decomposition import PCA

    pca = PCA(KEPT, whiten=True, svd_solver="covariance_eigh")
    pca.fit(few()).transform(few())
    with Peak() as peak:
        vectors = np.load(file)
        start = time.perf_counter()
        pca.fit(vectors)
        fitted = time.perf_counter()
        moved = pca.transform(vectors)
        end = time.perf_counter()
    np.save(out, moved)
    variance = pca.explained_variance_.tolist()
    return {"fit": fitted - start, "apply": end - fitted, "memory": peak.most, "variance": variance}


def off(out: Path) -> float:
    """How far the covariance of what was written is from I, and its mean from 0, at most; in float64."""
    moved = np.load(out, mmap_mode="r")
    total, products = np.zeros(KEPT), np.zeros((KEPT, KEPT))
    for start in range(0, len(moved), 50_000):
        part = moved[start : start + 50_000].astype(np.float64)
        total += part.sum(0)
        products += part.T @ part
    mean = total / len(moved)
    covariance = (products - len(moved) * np.outer(mean, mean)) / (len(moved) - 1)
    return float(max(abs(mean).max(), abs(covariance - np.eye(KEPT)).max()))


def variances(file: Path) -> np.ndarray:
    """The largest eigenvalues of the covariance, in float64 by two walks over the file."""
    vectors = np.load(file, mmap_mode="r")
    parts = [slice(start, start + 20_000) for start in range(0, len(vectors), 20_000)]
    mean = sum(vectors[part].sum(0, dtype=np.float64) for part in parts) / len(vectors)
    products = np.zeros((WIDTH, WIDTH))
    for part in parts:
        centred = vectors[part] - mean
        products += centred.T @ centred
    return np.linalg.eigvalsh(products / (len(vectors) - 1))[::-1][:KEPT]


def turn(who: str, file: Path, out: Path, threads: int) -> dict[str, object]:
    """One of both in a process of its own."""
    several = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, __file__, who, str(file), str(out)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | several)
    return json.loads(told.stdout) | {"off": off(out)}


def contest(file: Path, out: Path, threads: int, exact: np.ndarray) -> dict[str, object]:
    """The better of both's turns; refuses what is wrong."""
    runs: dict[str, list[dict[str, object]]] = {"ours": [], "theirs": []}
    load = os.getloadavg()[0]
    for _ in range(TURNS):
        for who, found in runs.items():
            found.append(turn(who, file, out, threads))
    mine, its = (min(found, key=lambda one: one["fit"] + one["apply"]) for found in runs.values())
    for one in (mine, its):
        one["variances off"] = float(abs(np.array(one.pop("variance")) / exact - 1).max())
    if not mine["off"] < 1e-5 or not mine["variances off"] < 1e-5:
        sys.exit(f"covariance off by {mine['off']:.1e}, variances by {mine['variances off']:.1e}: not timed")
    ratio = (its["fit"] + its["apply"]) / (mine["fit"] + mine["apply"])
    return {"threads": threads, "load": load, "isoscope": mine, "scikit-learn": its, "ratio": ratio}


def main() -> None:
    rows = SMALL if "--small" in sys.argv else ROWS
    threads = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
    with tempfile.TemporaryDirectory() as place:
        file, out = Path(place) / "vectors.npy", Path(place) / "moved.npy"
        make(file, rows)
        found = contest(file, out, threads, variances(file))
    about = f"{threads} threads of {os.cpu_count()} cores, load {found['load']:.1f} before"
    print(f"whiten:{KEPT} of {rows:,} × {WIDTH}, {about}")
    for name in ("isoscope", "scikit-learn"):
        one = found[name]
        print(
            f"  {name:12} fit {one['fit']:7.2f} s  apply {one['apply']:7.2f} s  "
            f"memory {one['memory']:5.2f} GB  covariance off by {one['off']:.1e}"
        )
    print(f"  scikit-learn takes {found['ratio']:.2f} of our time (at least 1)")
    if rows == ROWS:
        RESULTS.mkdir(exist_ok=True)
        body = {"rows": rows, "width": WIDTH, "kept": KEPT, "cores": os.cpu_count()} | found
        (RESULTS / "repair-cpu.json").write_text(json.dumps(body, indent=2) + "\n")
    if found["isoscope"]["memory"] > ALLOWED:
        sys.exit(f"more than {ALLOWED} GB of memory")


if __name__ == "__main__":
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        print(json.dumps({"ours": ours, "theirs": theirs}[sys.argv[1]](*map(Path, sys.argv[2:4]))))
    else:
        main()
