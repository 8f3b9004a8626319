"""Judges flashinfer-bench Solutions: a Definition, its Workloads and a Solution in, Traces out.

SPDX-License-Identifier: Apache-2.0

    python3 attest_flashinfer.py --definition D.json --workloads W.jsonl --solution S.json --traces T.jsonl [--attest PROGRAM]
        [--numerics TEXT] [--seed N] [--no-sandbox]
    python3 attest_flashinfer.py --definition D.json --workloads W.jsonl --reference --traces T.jsonl

Each workload becomes a case of attest (its line is in the Trace's `extra`), and the Solution a runner of Python functions, kept in a
sandbox; attest draws the values, deals the pages and judges. What there is no case for is refused by name: exit 2. Solutions get
PyTorch's tensors where PyTorch is, on the CPU or on the first GPU, else numpy's arrays (bf16 as f32 of the same values). Exit codes: 0 every
Trace PASSED, 1 not, 2 bad input, 3 no attest, 4 nothing was judged. What of the format is taken: kernels/runner/python/README.md.
"""
import argparse
import datetime
import hashlib
import importlib.util
import inspect
import json
import os
import platform
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
STATUS = {"PASS": "PASSED", "OVERFLOWED": "PASSED", "VACUOUS": "PASSED", "WRONG": "INCORRECT_NUMERICAL", "LAUNDERED": "INCORRECT_NUMERICAL",
          "DIRTY": "INCORRECT_NUMERICAL", "RACY": "INCORRECT_NUMERICAL", "MISPREDICTED": "INCORRECT_NUMERICAL",
          "IMPOSSIBLE": "INCORRECT_NUMERICAL", "HUNG": "TIMEOUT", "CRASHED": "RUNTIME_ERROR", "ERROR": "RUNTIME_ERROR"}
WORST = ("RUNTIME_ERROR", "TIMEOUT", "INCORRECT_NUMERICAL", "PASSED")


class Refused(Exception):
    """What the files hold, and attest has no case or no way for."""


def want(condition, text, *values):
    """Refuses."""
    if not condition:
        raise Refused(text % values if values else text)


# ---- files ---------------------------------------------------------------------------------------
def read_json(path):
    """One object."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_lines(path):
    """An object a line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def field(item, name, kind, where):
    """A field that must be there."""
    want(isinstance(item, dict) and name in item, "%s has no %s", where, name)
    want(isinstance(item[name], kind), "%s: %s is %s", where, name, type(item[name]).__name__)
    return item[name]


def tensor_of_file(path, key):
    """Whole numbers of a safetensors file: 8 bytes of the header's length, the header, the data."""
    with open(path, "rb") as file:
        head = file.read(8)
        want(len(head) == 8, "%s is no safetensors file", path)
        size = struct.unpack("<Q", head)[0]
        want(size < 1 << 27, "%s is no safetensors file", path)
        header = json.loads(file.read(size))
        want(key in header, "%s has no tensor %s", path, key)
        kind = {"I32": np.int32, "I64": np.int64}.get(header[key]["dtype"])
        want(kind is not None, "%s: %s is of %s, wanted I32 or I64", path, key, header[key]["dtype"])
        first, end = header[key]["data_offsets"]
        file.seek(8 + size + first)
        return np.frombuffer(file.read(end - first), kind).reshape(header[key]["shape"])


class Task:
    """A Definition with one of its Workloads."""

    def __init__(self, definition, workload, folder):
        self.definition, self.folder = definition, folder
        self.name = field(definition, "name", str, "the definition")
        self.kind = field(definition, "op_type", str, self.name)
        self.inputs = field(definition, "inputs", dict, self.name)
        self.outputs = field(definition, "outputs", dict, self.name)
        self.given = field(workload, "inputs", dict, "the workload")
        self.uuid = field(workload, "uuid", str, "the workload")
        axes = field(definition, "axes", dict, self.name)
        self.axes = {name: axis["value"] for name, axis in axes.items() if axis.get("type") == "const"}
        self.axes.update(field(workload, "axes", dict, "the workload"))
        for name in self.inputs:
            want(name in self.given, "workload %s gives no %s", self.uuid, name)

    def axis(self, name):
        """A size."""
        want(isinstance(self.axes.get(name), int), "%s has no axis %s", self.name, name)
        return self.axes[name]

    def dtype(self, name):
        """Of an input or output, as attest calls it."""
        kind = {**self.inputs, **self.outputs}[name]["dtype"]
        want(kind in DTYPES, "%s of %s is of %s: attest judges %s here", name, self.name, kind, ", ".join(DTYPES))
        return DTYPES[kind]

    def drawn(self, *names):
        """Inputs whose values attest draws."""
        for name in names:
            want(self.given[name].get("type") == "random", "%s is given by %s: attest draws the values of %s itself", name,
                 self.given[name].get("type"), name)

    def scalar(self, name):
        """A number."""
        want(self.given.get(name, {}).get("type") == "scalar", "%s is no scalar", name)
        return float(self.given[name]["value"])

    def whole(self, name):
        """Offsets and lengths, which must be given."""
        given = self.given[name]
        want(given.get("type") == "safetensors", "%s is %s: where requests begin must be given, by a safetensors file", name,
             given.get("type"))
        path = os.path.normpath(os.path.join(self.folder, given["path"]))
        return tensor_of_file(path, given["tensor_key"]).astype(np.int64)

    def lengths(self, name):
        """Of requests, by the offsets of their beginnings."""
        bounds = self.whole(name)
        want(bounds.ndim == 1 and bounds.size > 1 and bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "%s does not ascend from 0",
             name)
        return np.diff(bounds)


# ---- operators -----------------------------------------------------------------------------------
def listed(lengths):
    """As a case line has them."""
    return "/".join(str(int(n)) for n in lengths)


def attention_line(task):
    """gqa_paged and gqa_ragged, decode and prefill."""
    paged, decode = task.kind == "gqa_paged", "qo_indptr" not in task.inputs
    keys = ("k_cache", "v_cache") if paged else ("k", "v")
    for name in ("q", "kv_indptr", "sm_scale") + keys:
        want(name in task.inputs, "%s has no input %s", task.name, name)
    for name in set(task.inputs) - {"q", "kv_indptr", "kv_indices", "qo_indptr", "kv_last_page_len", "sm_scale", *keys}:
        raise Refused("%s has an input %s, which this operator has not" % (task.name, name))
    task.drawn("q", *keys)
    page = task.axis("page_size") if paged else 0
    keys_of = task.lengths("kv_indptr") * max(page, 1)
    if "kv_last_page_len" in task.inputs:  # else pages are full
        last = task.whole("kv_last_page_len")
        want(last.shape == keys_of.shape and (last >= 0).all() and (last <= page).all(),
             "kv_last_page_len is not one of each request")
        keys_of = np.where(keys_of > 0, keys_of - page + last, 0)
    queries = None if decode else task.lengths("qo_indptr")
    want(queries is None or queries.shape == keys_of.shape, "qo_indptr and kv_indptr are of other numbers of requests")
    want(queries is None or (queries <= keys_of).all(), "a request has more queries than keys, which causal attention has no answer for")
    line = "%s b=%d h=%d hk=%d sk=%s d=%d page=%d dtype=%s scale=%.9g" % (
        "softmax_decode" if decode else "softmax_prefill", keys_of.size, task.axis("num_qo_heads"), task.axis("num_kv_heads"),
        listed(keys_of), task.axis("head_dim"), page, task.dtype("q"), task.scalar("sm_scale"))
    return line if decode else line + " sq=%s causal=1" % listed(queries)


def norm_line(task):
    """rmsnorm; its epsilon is a literal of the reference."""
    want(set(task.inputs) == {"hidden_states", "weight"}, "%s has inputs %s: wanted hidden_states and weight", task.name,
         " ".join(task.inputs))
    task.drawn("hidden_states", "weight")
    reference = field(task.definition, "reference", str, task.name)
    found = {float(text) for text in re.findall(r"\beps(?:ilon)?\s*=\s*([0-9.]+(?:e-?[0-9]+)?)", reference, re.I)}
    want(len(found) == 1, "the reference of %s names %d numbers as eps, wanted one", task.name, len(found))
    return "rms_norm tokens=%d channels=%d dtype=%s eps=%.9g" % (task.axis("batch_size"), task.axis("hidden_size"),
                                                                 task.dtype("hidden_states"), found.pop())


def product_line(task):
    """gemm: C = A B^T."""
    want(set(task.inputs) == {"A", "B"} and len(task.outputs) == 1, "%s is not C = A B^T of A and B", task.name)
    task.drawn("A", "B")
    return "gemm m=%d n=%d k=%d layout=nk dtype=%s out=%s" % (task.axis("M"), task.axis("N"), task.axis("K"), task.dtype("A"),
                                                              task.dtype(next(iter(task.outputs))))


LINES = {"gqa_paged": attention_line, "gqa_ragged": attention_line, "rmsnorm": norm_line, "gemm": product_line}


def case_line(task, seed):
    """The case of a workload, and its family."""
    want(task.kind in LINES, "op_type %s: attest has cases for %s", task.kind, ", ".join(LINES))
    line = LINES[task.kind](task)
    draw = int(hashlib.sha256(("%s %s" % (task.uuid, seed)).encode()).hexdigest()[:6], 16)
    return "%s seed=%d" % (line, draw), line.split()[0]


# ---- the Solution as a runner --------------------------------------------------------------------
def entry_point(solution, folder):
    """Its function, from sources that are written to a folder of their own."""
    spec = field(solution, "spec", dict, "the solution")
    language = field(spec, "language", str, "its spec")
    want(language in ("python", "pytorch", "triton") and spec.get("binding") in (None, "torch"),
         "a Solution in %s, bound by %s: Python and Triton are run here", language, spec.get("binding"))
    file, _, name = field(spec, "entry_point", str, "its spec").partition("::")
    for source in field(solution, "sources", list, "the solution"):
        path = os.path.normpath(field(source, "path", str, "a source"))
        want(not os.path.isabs(path) and path.split(os.sep)[0] != "..", "the source %s is not in the solution's own folder",
             source["path"])
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as out:
            out.write(field(source, "content", str, source["path"]))
    want(name and os.path.isfile(os.path.join(folder, file)), "there is no %s", spec["entry_point"])
    sys.path.insert(0, folder)
    module_name = "solution_" + os.path.splitext(os.path.basename(file))[0]
    found = importlib.util.spec_from_file_location(module_name, os.path.join(folder, file))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    want(callable(getattr(module, name, None)), "%s has no function %s", file, name)
    return getattr(module, name), spec.get("destination_passing_style", True)


class Values:
    """What a Solution gets and gives: PyTorch's tensors, else numpy's arrays."""

    def __init__(self):
        try:
            import torch  # pylint: disable=import-outside-toplevel
            self.torch, self.device = torch, "cuda" if torch.cuda.is_available() else "cpu"
        except ImportError:
            self.torch, self.device = None, "cpu"

    def hardware(self):
        """In words."""
        return self.torch.cuda.get_device_name() if self.device == "cuda" else platform.processor() or platform.machine()

    def libraries(self):
        """With their versions."""
        return {"numpy": np.__version__, **({"torch": self.torch.__version__} if self.torch else {})}

    def give(self, t):
        """A copy of a tensor of attest's, or of whole numbers."""
        from attest_runner import Tensor, f64, torch_of  # pylint: disable=import-outside-toplevel
        if self.torch:
            return (torch_of(t) if isinstance(t, Tensor) else self.torch.from_numpy(np.ascontiguousarray(t))).clone().to(self.device)
        coded = isinstance(t, Tensor) and t.coded()
        return f64(t).astype(np.float32) if coded else np.array(t, subok=False)

    def empty(self, like):
        """An output to be written, filled with NaN."""
        return self.give(like) * float("nan")


def gather(t, slots):
    """Rows of a tensor of attest's, in an order, as one of those."""
    part = t[slots]
    part.format, part.name, part.role = t.format, t.name, t.role
    return part


def inputs_of(task, job):
    """By the Definition's names, from attest's tensors: arrays, attest's own, numbers."""
    t, given = job.tensors, {}
    if task.kind == "rmsnorm":
        return {"hidden_states": t["x"], "weight": t["gamma"]}
    if task.kind == "gemm":
        return {"A": t["a"], "B": t["b"]}
    lens = np.asarray(t["seq_lens"]).astype(np.int64)
    page = job.size["page"]
    if task.kind == "gqa_paged":
        pages = -(-lens // page)
        table = np.asarray(t["block_table"])
        given["kv_indices"] = np.concatenate([table[r, :pages[r]] for r in range(lens.size)] or [[]]).astype(np.int32)
        given["kv_last_page_len"] = np.where(lens > 0, (lens - 1) % page + 1, 0).astype(np.int32)
        for name, cache in (("k", "k_cache"), ("v", "v_cache")):
            whole = t[name].shape[0] // page * page
            given[cache] = t[name][:whole].reshape((-1, page) + t[name].shape[1:])
    else:
        pages = lens
        start = np.asarray(t["key_start"]).astype(np.int64)
        slots = np.concatenate([np.arange(start[r], start[r] + lens[r]) for r in range(lens.size)] or [[]]).astype(np.int64)
        given.update({name: gather(t[name], slots) for name in ("k", "v")})
    given["kv_indptr"] = np.concatenate([[0], np.cumsum(pages)]).astype(np.int32)
    given.update({"q": t["q"], "qo_indptr": np.asarray(t["query_start"]), "sm_scale": job.param["scale"]})
    return given


def outputs_of(task, job):
    """Attest's outputs by the Definition's names, and what a Solution's value is multiplied by: their lse is of base 2."""
    t = job.tensors
    ours = {"rmsnorm": ["y"], "gemm": ["d"]}.get(task.kind, ["o", "lse"])
    want(len(ours) == len(task.outputs), "%s has outputs %s: wanted %d", task.name, " ".join(task.outputs), len(ours))
    return {name: (t[mine], float(np.log(2)) if mine == "lse" else 1.0) for name, mine in zip(task.outputs, ours)}


def call(function, passes_outputs, given, empty):
    """The Solution's own call: by name where its names are the Definition's, else in their order."""
    known = {**given, **(empty if passes_outputs else {})}
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    result = function(**known) if set(names) == set(known) else function(*known.values())
    if passes_outputs:
        return empty
    if isinstance(result, dict):
        return result
    return dict(zip(empty, result if isinstance(result, (tuple, list)) else (result,)))


def serve_solution(path):
    """The runner: one function, of the family that the task is of."""
    from attest_runner import kernel, put, serve  # pylint: disable=import-outside-toplevel
    job_file = read_json(path)
    task = Task(job_file["definition"], job_file["workload"], job_file["folder"])
    function, passes_outputs = entry_point(job_file["solution"], tempfile.mkdtemp())
    values = Values()

    def solution(job):
        """as flashinfer-bench calls it"""
        given = inputs_of(task, job)
        given = {name: given[name] if name == "sm_scale" else values.give(given[name]) for name in task.inputs}
        outputs = outputs_of(task, job)
        left = call(function, passes_outputs, given, {name: values.empty(t) for name, (t, _) in outputs.items()})
        for name, (t, factor) in outputs.items():
            want(name in left, "the Solution returned no %s", name)
            want(tuple(left[name].shape) == t.shape, "%s is of shape %s, wanted %s", name, tuple(left[name].shape), t.shape)
            put(t, left[name] * factor)

    kernel(job_file["family"], variant="01_solution", numerics=job_file["numerics"], source="flashinfer-bench",
           summary=str(job_file["solution"].get("name", ""))[:200])(solution)
    serve(device="%s, flashinfer-bench Solution" % values.hardware())


# ---- Traces --------------------------------------------------------------------------------------
def evaluation(results, line, values):
    """Of one workload's results; None where nothing was judged."""
    judged = [r for r in results if r["state"] not in ("UNSUPPORTED", "SKIPPED")]
    if not judged:
        return None
    status = min((STATUS[r["state"]] for r in judged), key=WORST.index)
    worst = next(r for r in judged if STATUS[r["state"]] == status)
    trace = {"status": status, "environment": {"hardware": values.hardware(), "libs": values.libraries()},
             "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
             "log": "\n".join(filter(None, (worst.get("cause"), worst.get("repro"))))}
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        extra = {"state": worst["state"], "cause": worst.get("cause", ""), "repro": worst.get("repro", ""), "case": line,
                 "ratio": max(r["ratio_max"] for r in judged), "decoys": min(r["decoy_fate"].count("r") for r in judged),
                 "model_exact": all(r["model_exact"] for r in judged), "vacuous": any(r["state"] == "VACUOUS" for r in judged),
                 "relative_error_is": "of the whole output, by squares", "untimed": True}
        trace["correctness"] = {"max_absolute_error": max(r["err_max"] for r in judged),
                                "max_relative_error": max(r["err_rel_l2"] for r in judged), "extra": extra}
    if status == "PASSED":
        trace["performance"] = {"latency_ms": 0.0, "reference_latency_ms": 0.0, "speedup_factor": 0.0}
    return trace


def judge(task, solution, options, values):
    """Runs attest on one workload: the evaluation, and why there is none."""
    line, family = case_line(task, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        numerics = options.numerics or "free_order=1" + (" p=" + task.dtype("q") if "q" in task.inputs else "")
        job, out = os.path.join(folder, "job.json"), os.path.join(folder, "out.jsonl")
        with open(job, "w", encoding="utf-8") as file:
            json.dump({"definition": task.definition, "workload": {"uuid": task.uuid, "axes": task.axes, "inputs": task.given},
                       "folder": os.path.abspath(task.folder), "solution": solution, "family": family, "numerics": numerics}, file)
        runner = " ".join(shlex.quote(word) for word in (sys.executable, os.path.abspath(__file__), "--serve", job))
        command = [options.attest, "verify", family + "/*", "--case", line, "--runner", runner, "--json", out, "--quiet"]
        done = subprocess.run(command + ([] if options.no_sandbox else ["--sandbox"]), capture_output=True, text=True, check=False)
        results = read_lines(out) if os.path.exists(out) else []
        if done.returncode not in (0, 1, 4):
            raise Refused("attest: exit %d: %s" % (done.returncode, done.stderr.strip().split("\n")[-1]))
        return evaluation(results, line, values), next((r.get("cause") for r in results), done.stderr.strip())


def reference_of(definition):
    """The Definition's own reference as a Solution, which returns its outputs."""
    return {"name": "reference", "spec": {"language": "python", "entry_point": "reference.py::run", "destination_passing_style": False},
            "sources": [{"path": "reference.py", "content": field(definition, "reference", str, "the definition")}]}


def find_attest(given):
    """The program: the one given, else that of PATH, or this tree's build."""
    for path in (given,) if given else (shutil.which("attest"), os.path.join(HERE, "../../../build/attest")):
        if path and os.access(path, os.X_OK):
            return path
    print("attest_flashinfer: there is no attest (--attest PROGRAM)", file=sys.stderr)
    sys.exit(3)


def main():
    """The command."""
    parser = argparse.ArgumentParser(description="judges a flashinfer-bench Solution on Workloads of its Definition and writes Traces")
    parser.add_argument("--serve", metavar="JOB", help=argparse.SUPPRESS)
    for name, text in (("--definition", "JSON"), ("--workloads", "JSON lines; paths in them are beside it"), ("--solution", "JSON"),
                       ("--traces", "JSON lines, written anew")):
        parser.add_argument(name, metavar="FILE", help=text)
    parser.add_argument("--reference", action="store_true", help="judge the Definition's own reference")
    parser.add_argument("--attest", metavar="PROGRAM", help="default: attest of PATH, then build/attest of this tree")
    parser.add_argument("--numerics", metavar="TEXT", default="",
                        help="what the Solution declares (attest help numerics); default: no order, P in the format of q")
    parser.add_argument("--seed", default="0", help="of the values")
    parser.add_argument("--no-sandbox", action="store_true", help="Solutions are trusted")
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    if options.serve:
        return serve_solution(options.serve)
    if not (options.definition and options.workloads and options.traces and bool(options.solution) != options.reference):
        parser.error("wanted --definition, --workloads, --traces, and --solution or --reference")
    options.attest = find_attest(options.attest)
    values, traces, passed = Values(), [], 0
    try:
        definition = read_json(options.definition)
        solution = reference_of(definition) if options.reference else read_json(options.solution)
        own = solution.get("definition", definition.get("name"))
        want(own == definition.get("name"), "the solution is of %s, the definition is %s", own, definition.get("name"))
        for item in read_lines(options.workloads):
            workload = field(item, "workload", dict, "a line of the workloads")
            want(item.get("definition", own) == definition.get("name"), "a workload is of %s", item.get("definition"))
            found, why = judge(Task(definition, workload, os.path.dirname(options.workloads)), solution, options, values)
            print("%s %s" % (workload["uuid"], found["status"] if found else "not judged: %s" % why))
            if found:
                traces.append({"definition": definition["name"], "workload": workload, "solution": solution["name"], "evaluation": found})
                passed += found["status"] == "PASSED"
    except (Refused, OSError, ValueError, KeyError) as error:
        print("attest_flashinfer: %s" % error, file=sys.stderr)
        return 2
    with open(options.traces, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(trace) + "\n" for trace in traces)
    print("%d of %d PASSED" % (passed, len(traces)))
    return 4 if not traces else int(passed != len(traces))


if __name__ == "__main__":
    sys.exit(main())
