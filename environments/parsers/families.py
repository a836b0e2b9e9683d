"""The model families, by name, and by the names of their models."""

from __future__ import annotations

import difflib
import re

from environments.parsers.bare_json import BareList, LlamaJson
from environments.parsers.function_xml import FunctionXml
from environments.parsers.gemma import Gemma
from environments.parsers.glm import Glm
from environments.parsers.harmony import Harmony
from environments.parsers.invoke_xml import InvokeXml
from environments.parsers.kimi_k3 import KimiK3
from environments.parsers.llama import Llama
from environments.parsers.minimax_m3 import MiniMaxM3
from environments.parsers.mistral import Mistral
from environments.parsers.parser import Family
from environments.parsers.pythonic import Pythonic
from environments.parsers.sections import DeepSeek, KimiK2
from environments.parsers.tagged_json import TaggedJson
from environments.parsers.thinking import SCRATCH_PADS, THINK, Thinking

ANSWER, RESPONSE = ("<answer>", "</answer>"), ("<response>", "</response>")
CHATML = ("<|im_end|>", "<|endoftext|>")
DEEPSEEK = ("<｜end▁of▁sentence｜>",)
GLM = ("<|observation|>", "<|user|>", "<|endoftext|>")
GRANITE = ("<|end_of_text|>",)
LLAMA = ("<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>", "<|end_of_text|>")
MISTRAL_THINKING = (Thinking("[THINK]", "[/THINK]"), Thinking("<think>", "</think>", shown=True))
K3_THINKING = (Thinking("<|open|>think<|sep|>", "<|close|>think<|sep|>"), THINK)
KIMI_THINKING = (THINK, Thinking("◁think▷", "◁/think▷", shown=True))
GEMMA_THINKING = (Thinking("<|channel>thought\n", "<channel|>"),)
LONGCAT_THINKING = (Thinking("<longcat_think>", "</longcat_think>"), THINK)
M3_THINKING = (Thinking("<mm:think>", "</mm:think>"), THINK)
SEED_THINKING = (Thinking("<seed:think>", "</seed:think>"), THINK)
HERMES = TaggedJson(("<tool_call>",), "</tool_call>")
LONGCAT = TaggedJson(("<longcat_tool_call>",), "</longcat_tool_call>")
INTERNLM = TaggedJson(("<|action_start|>",), "<|action_end|>", "<|plugin|>", arguments="parameters")
GRANITE_LIST = TaggedJson(("<|tool_call|>", "<tool_call>"), as_list=True, gap="")
HUNYUAN = TaggedJson(("<tool_calls>",), "</tool_calls>", as_list=True, gap="")
PHI4_MINI = TaggedJson(("functools", "<|tool_call|>"), as_list=True, gap="", may_close="<|/tool_call|>")
DSML_V32 = InvokeXml("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜", typed=True)
DSML_V4 = InvokeXml("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", "｜DSML｜", typed=True)
STEP3 = InvokeXml(
    "<｜tool_calls_begin｜>",
    "<｜tool_calls_end｜>",
    "steptml:",
    call_begin="<｜tool_call_begin｜>function<｜tool_sep｜>",
    call_end="<｜tool_call_end｜>",
)

_FAMILIES = (
    Family("hermes", HERMES, stop_tokens=CHATML, silent_between=True),
    Family("qwen", HERMES, stop_tokens=CHATML, silent_between=True),
    Family("longcat", LONGCAT, LONGCAT_THINKING, ("</longcat_s>", *CHATML), silent_between=True),
    Family("granite", GRANITE_LIST, stop_tokens=GRANITE, answer=RESPONSE),
    Family("granite4", HERMES, stop_tokens=GRANITE, answer=RESPONSE),
    Family("ernie45", HERMES, stop_tokens=("</s>", *CHATML), answer=RESPONSE),
    Family("internlm", INTERNLM, stop_tokens=("</s>", *CHATML)),
    Family("hunyuan_a13b", HUNYUAN, stop_tokens=("<|eos|>",), answer=ANSWER),
    Family("phi4_mini", PHI4_MINI, stop_tokens=("<|end|>",)),
    Family("xlam", BareList(), stop_tokens=(*CHATML, *LLAMA)),
    Family("llama", LlamaJson(), stop_tokens=LLAMA),
    Family("llama_pythonic", Llama(), stop_tokens=LLAMA),
    Family("lfm2", Pythonic("<|tool_call_start|>", "<|tool_call_end|>"), stop_tokens=CHATML),
    Family("olmo3", Pythonic("<function_calls>", "</function_calls>", brackets=False), stop_tokens=CHATML),
    Family("mistral", Mistral(), MISTRAL_THINKING, ("</s>",)),
    Family("mistral_pre_v11", Mistral(as_list=True), MISTRAL_THINKING, ("</s>",)),
    Family("deepseek_v3", DeepSeek(fenced=True), stop_tokens=DEEPSEEK),
    Family("deepseek_v31", DeepSeek(), stop_tokens=DEEPSEEK),
    Family("deepseek_v32", DSML_V32, stop_tokens=DEEPSEEK),
    Family("deepseek_v4", DSML_V4, stop_tokens=DEEPSEEK),
    Family("kimi_k2", KimiK2(), KIMI_THINKING, ("<|im_end|>",)),
    Family("kimi_k3", KimiK3(), K3_THINKING, ("<|im_end|>",)),
    Family("glm45", Glm(gap="\n"), stop_tokens=GLM),
    Family("glm47", Glm(), stop_tokens=GLM),
    Family("qwen3_coder", FunctionXml(), stop_tokens=CHATML),
    Family("nemotron_v3", FunctionXml(), stop_tokens=CHATML),
    Family("step3p5", FunctionXml(), stop_tokens=CHATML),
    Family("seed_oss", FunctionXml("<seed:tool_call>", "</seed:tool_call>"), SEED_THINKING, ("<seed:eos>",)),
    Family("minimax_m2", InvokeXml("<minimax:tool_call>", "</minimax:tool_call>"), stop_tokens=("[e~[",)),
    Family("minimax_m3", MiniMaxM3(), M3_THINKING, ("[e~[",)),
    Family("step3", STEP3, stop_tokens=CHATML),
    Family("gpt_oss", Harmony(), (), ("<|return|>", "<|call|>", "<|end|>"), stops_between=True),
    Family("gemma4", Gemma("<|tool_call>", "<tool_call|>", '<|"|>'), GEMMA_THINKING, ("<turn|>",)),
    Family(
        "functiongemma",
        Gemma("<start_function_call>", "<end_function_call>", "<escape>", all_strings=True),
        stop_tokens=("<end_of_turn>", "<start_function_response>"),
    ),
)
FAMILIES = {family.name: family for family in _FAMILIES}
THINKING = tuple(dict.fromkeys(one for family in _FAMILIES for one in family.thinking)) + SCRATCH_PADS
"""Every block of reasoning that a family, or a prompt, knows."""
STOP_TOKENS = tuple(dict.fromkeys(token for family in _FAMILIES for token in family.stop_tokens))
"""Of all families."""

# The more specific first: a fine-tune before its base, a version before the line it belongs to. "" for those
# that write in none of the forms.
_MODELS = (
    ("hermes", r"hermes|smollm"),
    ("xlam", r"xlam"),
    ("llama_pythonic", r"toolace|llama-?4|llama-?v?3[.p-]2[-:][13]b"),
    ("kimi_k3", r"kimi-?k3"),
    ("kimi_k2", r"kimi"),
    ("glm47", r"(?<!chat)glm-?(?:4[.p][7-9]|[5-9])"),
    ("glm45", r"(?<!chat)glm-?4[.p-]?[56]"),
    ("deepseek_v4", r"deepseek-?(?:chat-)?v4"),
    ("deepseek_v31", r"deepseek-?(?:chat-)?v3[.p-](?:1|2-exp)"),
    ("deepseek_v32", r"deepseek-?(?:chat-)?v3[.p-]2"),
    ("deepseek_v3", r"deepseek-?(?:v3|r1-0528|chat)"),
    ("nemotron_v3", r"nemotron-?(?:3|nano-3)(?!\d)"),
    ("", r"nemotron|minimax-?m1|minimax-?text|llama-?2|code-?llama|tiny-?llama"),
    ("qwen3_coder", r"qwen-?3-coder|qwen-?3[.p][5-9]|mimo-?v\d|nanbeige"),
    ("qwen", r"qwen|qwq|mimo"),
    ("longcat", r"longcat"),
    (
        "mistral_pre_v11",
        r"mixtral|mistral[-:](?:7b|nemo)|pixtral-12b|codestral-22b|(?:mi|mini|code|pix)stral-.*(?:24\d\d|2501)",
    ),
    ("mistral", r"(?:mi|mini|magi|code|dev)stral|pixtral"),
    ("minimax_m3", r"minimax-?m3"),
    ("minimax_m2", r"minimax"),
    ("gpt_oss", r"gpt-?oss"),
    ("functiongemma", r"functiongemma"),
    ("gemma4", r"gemma-?4"),
    ("granite4", r"granite-?4"),
    ("granite", r"granite"),
    ("phi4_mini", r"phi-?4-mini"),
    ("step3p5", r"step-?3(?:\.|p)[5-9]"),
    ("step3", r"step-?3"),
    ("olmo3", r"olmo-?3"),
    ("seed_oss", r"seed-?oss"),
    ("hunyuan_a13b", r"hunyuan-?a13b|jamba"),
    ("ernie45", r"ernie-?4\.5"),
    ("internlm", r"intern-?(?:lm|s1)"),
    ("lfm2", r"lfm-?2"),
    ("llama", r"llama"),
)


_WITHOUT_SUFFIX = ("mistral_v11",)
"""Names of variants that are the family itself."""


def parser_for(model_name: str) -> Family | None:
    """The family of a model, told by its name; None where the name tells nothing.

    Args:
        model_name: As servers and hubs write it, such as `Qwen/Qwen3-Coder-30B-A3B-Instruct`.
    """
    # The last folder of a path that tells something; of a hub's two parts, the organisation does not.
    parts = re.sub(r"[\s_]+", "-", model_name.casefold()).split("/")
    for name in reversed(parts[1:] if len(parts) == 2 and parts[0] else parts):
        for family, pattern in _MODELS:
            if re.search(pattern, name):
                return FAMILIES.get(family)
    return None


def family_of(name: str, variant: str = "") -> Family:
    """A family by its own name, or by name and variant: llama `pythonic`, mistral `pre_v11` or `v11`.

    Raises:
        LookupError: There is none; its text names the nearest ones, or the variants.
    """
    found = FAMILIES.get(name)
    if found and variant and f"{name}_{variant}" not in _WITHOUT_SUFFIX:
        found = FAMILIES.get(f"{name}_{variant}")
        if found is None:
            known = [other.removeprefix(f"{name}_") for other in FAMILIES if other.startswith(f"{name}_")]
            raise LookupError(f"no variant {variant!r} of {name}: {', '.join(known) or 'it has none'}")
    if found is None:
        nearest = difflib.get_close_matches(name, FAMILIES, 3) or sorted(FAMILIES)
        raise LookupError(f"no family {name!r}: {', '.join(nearest)}")
    return found
