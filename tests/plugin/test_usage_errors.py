"""Command lines that no run can be of: exit status 4, one line that says why, no traceback and no report."""

import pytest

from tests.plugin.conftest import GATED, MODEL, SUITE

NO_MODEL = "*a model or a record is needed*--kb-model=SPEC*"
ENDING = "the name of a suite ends in .kb.yaml; rename it to w.kb.yaml"
OPENAI = "--kb-model=openai/m --kb-model-args=base_url=http://x/v1"
SERVED = f"{MODEL} --kb-judge=openai/x"
VLLM = "--kb-model=vllm/reference"
FLAGS = [
    ("--kb-model=./nowhere", "*nowhere*"),
    ("--kb-model=suites", "*config.json*"),
    ("--kb-model=reference:overconfidant", "*did you mean 'overconfident'*"),
    ("--kb-model=refrence", "refrence: *or reference; did you mean 'reference'?"),
    ("--kb-model=refrence:int4", "*did you mean 'reference:int4'?"),
    ("--kb-model=openai/gpt", "openai/gpt: *OPENAI_API_KEY holds no key*base_url*"),
    ("--kb-model=openai/", "openai/: no model named*openai/NAME*"),
    ("--kb-model=vllm/./nowhere", "*no such folder*"),
    ("--kb-model=vlm/x/y", "*did you mean 'vllm'*"),
    (f"{OPENAI} --kb-top-k=5", "--kb-top-k: found 5 with openai/m, *; allowed: *"),
    (f"{VLLM} --kb-device=cpu", "*is for vLLM to choose*"),
    (f"{VLLM} -n3", "-n 3: each worker takes 1 GPU(s)*allowed is -n 2 at most*"),
    ("--kb-model=reference --kb-device=cuda:9", "*allowed on this machine: auto, cpu*"),
    ("--kb-model=reference --kb-model-args=dtyp=x", "*dtyp*did you mean 'dtype'*"),
    (f"{MODEL} --kb-device=cpu", "scripted/knows.jsonl: *allowed is *"),
    (f"{MODEL} --kb-inconclusive=fial", "*'fial'*did you mean 'fail'*"),
    (f"{MODEL} --co --kb-limit=0", "--kb-limit: found '0'; allowed: *"),
    (f"{MODEL} --kb-judge=rulse", "--kb-judge: *did you mean 'rules'*"),
    (f"{MODEL} --kb-judge=vlm/x/y", "--kb-judge: *did you mean 'vllm'*"),
    (SERVED, "--kb-judge: openai/x: *OPENAI_API_KEY holds no key*"),
    (f"{SERVED} --kb-judge-args=base_ulr=x", "--kb-judge: *mean 'base_url'*"),
    (f"{MODEL} --kb-judge-args=base_url=http://x", "*base_url=*for no model here*"),
    (f"{MODEL} --kb-baseline=referense", "*referense*"),
    (f"{MODEL} --kb-baseline=report", "--kb-baseline: report is the *compare report *"),
    ("--kb-model=./nowhere --kb-baseline=x", "./nowhere: no such folder*"),
    (f"{MODEL} suites/../x --kb-baseline=x", "suites/../x: no such file or folder*"),
    (f"{MODEL} --kb-baseline=./foreign", "*foreign*"),
    (f"{MODEL} --kb-baseline=published/monitor/vicua-7b", "*monitor/vicuna-7b'*"),
    (
        f"{MODEL} --kb-baseline=x --kb-baseline-model=reference",
        "*found with --kb-baseline,*",
    ),
    (f"{MODEL} --kb-baseline-model=./nowhere", "--kb-baseline-model: *nowhere*"),
    (f"{MODEL} --kb-baseline-update=published/monitor/x", "*stands for figures of a*"),
    (f"{MODEL} --kb-baseline-update=suites", "*found *a file or folder here*"),
    (f"{MODEL} --kb-baseline-update", "*: no name given; write --kb-baseline-upd*"),
    (f"{MODEL} --kb-baseline-update=x --kb-until-decided=all", "*a complete one*"),
    (f"{MODEL} --kb-baseline-reason=why", "*: found without --kb-baseline-update*"),
    (f"{MODEL} --kb-prices=1,2", "*: found without --kb-plan or max_cost in *"),
    (f"{MODEL} --kb-shard=1/2 --kb-baseline-update=x", "--kb-shard: *with --kb-base*"),
    (f"{MODEL} --kb-shard=1/2 --kb-plan", "--kb-shard: found with --kb-plan, *"),
    (f"{MODEL} --kb-shard-by=case", "*: found without --kb-shard; *"),
    ("--kb-model=answers/x --kb-plan", "--kb-plan: nothing is asked of answers/x, *"),
    (f"{MODEL} --kb-junit-properties", "*: found without --junitxml*"),
    (f"{MODEL} --kb-until-decided=all", "*: found without a baseline*"),
    ("--kb-model=", f"--kb-model: found {NO_MODEL}"),
    ("--kb-baseline=prod", f"--kb-baseline: found {NO_MODEL}"),
    ("--kb-limit=3", f"--kb-limit: found {NO_MODEL}"),
    ("suites/mini.kb.yaml", "*mini.kb.yaml*no model is given*--kb-model*"),
    ("suites/w.kb.yml", f"suites/w.kb.yml: {ENDING}"),
    (f"{MODEL} suites/mni.kb.yaml", "*no such suite*did you mean 'mini.kb.yaml'?"),
    (f"{MODEL} suites/mini.kb.yaml::monitor[P63]", "*did you mean 'monitor[[]P36]'?"),
    (f"{MODEL} suites/mini.kb.yaml::reliability[overall]", "*cannot be selected"),
    (f"{MODEL} -o kb_baselne=x", "kb_baselne: *with -o*mean 'kb_baseline'?"),
]


@pytest.mark.parametrize(("flags", "message"), FLAGS)
def test_a_usage_error_is_one_line(pytester, mini_suite, monkeypatch, flags, message):
    mini_suite(SUITE)
    for name in ("w.kb.yml", "foreign/baseline.json", "report/report.json"):
        path = pytester.path / ("" if "/" in name else "suites") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(GATED, "utf-8")
    (pytester.path / "vllm.py").touch()
    pytester.syspathinsert()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    where = () if "suites/" in flags else ("suites",)
    result = pytester.runpytest(*where, *flags.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    assert not (pytester.path / "kbrel-report" / "report.json").exists()
