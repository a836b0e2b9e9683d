"""Control tokens as the chat templates and tokenizers of model families have them."""

from __future__ import annotations

FAMILIES = {
    "chatml": ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>", "<|image_pad|>"],
    "llama": ["<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"],
    "llama 2": ["<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"],
    "mistral": [
        *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]"),
        *("[SYSTEM_PROMPT]", "[/MODEL_SETTINGS]", "[THINK]", "[/THINK]", "[IMG]", "[IMG_BREAK]", "[SUFFIX]"),
    ],
    "gemma": ["<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<unused7>"],
    "gemma 4": [
        *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
        *("<|tool_response>", "<tool_response|>", "<|think|>"),
    ],
    "functiongemma": [
        "<start_function_call>",
        "<end_function_call>",
        "<start_function_response>",
        "<escape>",
    ],
    "deepseek": [
        "<｜begin▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<｜tool▁calls▁begin｜>",
        "｜DSML｜",
    ],
    "kimi": ["<|im_user|>", "<|im_middle|>", "<|tool_call_begin|>", "[BOS]", "[EOT]", "◁think▷", "◁/think▷"],
    "glm": [
        "[gMASK]",
        "[sMASK]",
        "<sop>",
        "<eop>",
        "<|user|>",
        "<|observation|>",
        "<arg_key>",
        "</arg_value>",
    ],
    "minimax": ["]~!b[", "]~b]", "[e~[", "]!d~[", "]!p~[", "<minimax:tool_call>", "</minimax:tool_call>"],
    "minimax m3": ["]<]minimax[>[", "]<]start of image[>[", "<mm:think>"],
    "seed": ["<seed:bos>", "<seed:eos>", "<seed:think>", "</seed:tool_call>", "<seed:cot_budget_reflect>"],
    "longcat": ["<longcat_user>", "</longcat_s>", "<longcat_tool_call>", "</longcat_think>"],
    "harmony": ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|call|>", "<|return|>"],
    "phi": ["<|system|>", "<|end|>", "<|/tool_call|>"],
    "cohere": ["<|START_OF_TURN_TOKEN|>", "<BOS_TOKEN>"],
    "exaone": ["[|user|]", "[|endofturn|]"],
    "olmo, jamba": ["<function_calls>", "</function_calls>", "<tool_calls>"],
    "code": ["<fim_prefix>", "<fim_middle>", "<|fim_suffix|>"],
    "places of media": ["<image>", "<video>", "<audio>"],
}
CONTROL_TOKENS = [token for tokens in FAMILIES.values() for token in tokens]
