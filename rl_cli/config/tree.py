"""The typed tree that configures a run, and the rules across its fields."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MOST_STEPS = 10_000_000
MOST_ROWS = 1_000_000
"""Of a batch, or of tasks and worked solutions held at once."""
YEAR_SECONDS = 366 * 86400


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True, validate_default=True
    )


class EnvironmentSection(Section):
    name: str
    """The environment to learn, as `rl-cli envs list` names it."""
    options: dict[str, Any] = {}
    """The environment's own settings, as `rl-cli envs show NAME` lists them."""
    folder: str | None = None
    """Where a person's own environments lie; null for the built-in ones."""


class BackendSection(Section):
    name: Literal["trl", "replay", "wandb"] = "trl"
    """trl trains; replay plays a recorded run; wandb follows a run that somebody else started."""
    file: str | None = None
    """replay only: the YAML file to play."""
    run: str | None = None
    """wandb only: entity/project/run, set by `rl-cli runs watch wandb:ENTITY/PROJECT/RUN`."""


class LoraSection(Section):
    rank: int = Field(default=16, ge=1, le=1024)
    """Rank of the adapter matrices."""
    alpha: int = Field(default=32, ge=1, le=65536)
    """Scale of the adapter: its output is multiplied by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout on the adapter's input."""


class ModelSection(Section):
    name: str = "tiny"
    """`tiny` (built here, about 0.4 M parameters), a Hugging Face name, or a folder."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the arithmetic; weights that are trained are kept in float32."""
    lora: LoraSection | None = None
    """Train a LoRA adapter rather than all weights; null trains all."""


class SftSection(Section):
    steps: int = Field(default=250, ge=0, le=MOST_STEPS)
    """Optimiser steps of the supervised warm start before the gate is looked at; 0 leaves it out."""
    rows: int = Field(default=3000, ge=1, le=MOST_ROWS)
    """Worked solutions to learn from."""
    batch_size: int = Field(default=64, ge=1, le=MOST_ROWS)
    """Rows per step."""
    learning_rate: float = Field(default=3e-3, gt=0, le=1e38)
    """Peak learning rate, constant between warm-up and cool-down."""
    warmup_steps: int = Field(default=20, ge=0, le=MOST_STEPS)
    """Steps of linear warm-up."""
    gate: float = Field(default=0.55, ge=0, le=1)
    """Train on until at least one of 8 samples solves this share of validation problems."""
    max_steps: int = Field(default=550, ge=0, le=MOST_STEPS)
    """Most steps in all, cool-down included. Where the gate is not reached in time, GRPO is not started."""
    cooldown_steps: int = Field(default=50, ge=0, le=MOST_STEPS)
    """Steps after the gate, in which the learning rate falls to 0; fewer where max_steps leaves no more."""


class GrpoSection(Section):
    steps: int = Field(default=40, ge=1, le=MOST_STEPS)
    """Optimiser steps, each on fresh rollouts."""
    batch_size: int = Field(default=256, ge=2, le=MOST_ROWS)
    """Rollouts per step; a multiple of group_size."""
    group_size: int = Field(default=8, ge=2, le=MOST_ROWS)
    """Rollouts per task."""
    micro_batch_size: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    """Rollouts per forward and backward pass, to bound memory; null takes the whole batch at once."""
    learning_rate: float = Field(default=3e-4, gt=0, le=1e38)
    """Constant learning rate."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling temperature of the rollouts."""
    max_new_tokens: int = Field(default=20, ge=1, le=1_000_000)
    """New tokens per completion of the model."""
    max_turns: int = Field(default=4, ge=1, le=10_000)
    """Completions per rollout, for environments with tools."""
    kl_beta: float = Field(default=0.0, ge=0, le=1000)
    """Weight of the KL penalty against the starting checkpoint."""
    clip_epsilon: float = Field(default=0.2, gt=0, lt=1)
    """Clipping of the probability ratio."""
    checkpoint_every: int = Field(default=10, ge=1, le=MOST_STEPS)
    """Steps between checkpoints."""
    keep_last: int = Field(default=2, ge=1, le=MOST_STEPS)
    """Newest checkpoints that are kept; the one that validates best is always kept too."""
    keep_every: int | None = Field(default=None, ge=1, le=MOST_STEPS)
    """Also keep the checkpoint of every so many steps (a multiple of checkpoint_every); null keeps none."""
    generation: Literal["auto", "in-process", "vllm"] = "in-process"
    """Who samples: the trainer's own model, or vLLM colocated on the same GPU; auto: vllm where installed."""


class EvaluationSection(Section):
    test_tasks: int = Field(default=400, ge=1, le=MOST_ROWS)
    """Test problems for `initial` and `final`, answered greedily."""
    validation_tasks: int = Field(default=128, ge=1, le=MOST_ROWS)
    """Validation problems, answered greedily during training."""
    every: int = Field(default=10, ge=1, le=MOST_STEPS)
    """Steps between validations."""


class TrackingSection(Section):
    wandb: Literal["auto", "live", "online", "offline", "off"] = "auto"
    """live: recorded here, uploaded by another process; online: logged there; auto: live with a key, else
    offline."""
    project: str = "rl-cli"
    """W&B project."""

    @field_validator("project")
    @classmethod
    def _is_a_project(cls, value: str) -> str:
        if not 0 < len(value) <= 128 or not value.isprintable() or set(value) & set("/\\#?%:"):
            raise ValueError(
                "must be the name of a W&B project: at most 128 characters, none of / \\ # ? % :"
            )
        return value


class AlertSection(Section):
    warmup_steps: int = Field(default=10, ge=0, le=MOST_STEPS)
    """No alert about learning before so many GRPO steps."""
    cooldown_steps: int = Field(default=20, ge=0, le=MOST_STEPS)
    """The same alert is raised again only after its rule was silent for more steps than this."""
    reward_drop: float = Field(default=0.2, gt=0, le=1)
    """Alert when the reward lies this share below its best level."""
    accuracy_drop: float = Field(default=0.1, gt=0, le=1)
    """Alert when validation accuracy lies this much below its best level."""
    entropy_share: float = Field(default=0.1, gt=0, lt=1)
    """Alert when entropy falls below this share of where it began."""
    kl: float = Field(default=1.0, gt=0, le=1e6)
    """Alert above this KL, in nats per token."""
    logprob_gap: float = Field(default=0.1, gt=0, le=1e6)
    """Alert when the logprobs of sampler and trainer differ by more than this, in nats."""
    clip_share: float = Field(default=0.3, gt=0, lt=1)
    """Alert when the ratio of more than this share of tokens is clipped."""
    gradient_factor: float = Field(default=20.0, gt=1, le=1e6)
    """Alert when the gradient norm is this many times its recent median."""
    length_factor: float = Field(default=2.0, gt=1, le=1e6)
    """Alert when completions get this many times longer, or shorter, and the reward does not rise."""
    cut_off_share: float = Field(default=0.5, gt=0, lt=1)
    """Alert when more than this share of completions ends at the token limit."""
    slowdown_factor: float = Field(default=2.5, gt=1, le=1e6)
    """Alert when a step takes this many times as long as before."""
    free_gb: float = Field(default=1.0, ge=0, le=1e6)
    """Alert when less disk or memory than this is left, in GB (at most 5 % of it), or less than an hour's."""


class HealthSection(Section):
    stall_seconds: float = Field(default=900, gt=0, le=YEAR_SECONDS)
    """Stop as failed when no progress was written for this long."""
    no_signal_batches: int = Field(default=5, ge=1, le=MOST_STEPS)
    """Stop as failed after this many steps in a row in which no group carried signal."""
    target_accuracy: float | None = Field(default=None, gt=0, le=1)
    """Stop as finished when validation accuracy reaches this."""
    plateau_patience: int | None = Field(default=None, ge=2, le=MOST_STEPS)
    """Stop as finished after this many validations without a new best; null never does."""
    stop_grace_seconds: float = Field(default=60, ge=0, le=YEAR_SECONDS)
    """How long a stopped worker may take to save before its process tree is ended."""
    first_check_seconds: float = Field(default=120, gt=0, le=YEAR_SECONDS)
    """The first judgement by the assistant is due this long after training starts."""
    check_every_seconds: float = Field(default=1800, gt=0, le=YEAR_SECONDS)
    """Judgements after the first one."""
    alerts: AlertSection = AlertSection()
    """When an alert is raised; none of these stops a run."""


class BudgetSection(Section):
    max_hours: float | None = Field(default=None, gt=0, le=YEAR_SECONDS / 3600)
    """Wall-clock bound of the whole run."""
    max_gpu_hours: float | None = Field(default=None, gt=0, le=1e9)
    """Stop as stopped when the run has taken so many GPU hours (GPUs times hours)."""
    max_dollars: float | None = Field(default=None, gt=0, le=1e9)
    """Stop as stopped when the run has cost so much, by the setting prices.gpu_hour."""
    deadline: str | None = None
    """Stop as stopped at this time, e.g. 2026-03-01T18:00:00+01:00."""

    @field_validator("deadline", mode="before")
    @classmethod
    def _has_a_zone(cls, value: Any) -> Any:
        if value is None:
            return None
        try:
            moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            moment = None
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise ValueError("must be an ISO 8601 time with a zone, for example 2026-12-01T18:00:00+01:00")
        return moment.isoformat()


class RunConfig(Section):
    """Everything that decides a run. A run's own run.yaml has exactly this form."""

    profile: str = "cpu-demo"
    """The named set of defaults that this config started from."""
    environment: EnvironmentSection
    backend: BackendSection = BackendSection()
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seeds data, initialisation and sampling."""
    model: ModelSection = ModelSection()
    sft: SftSection = SftSection()
    grpo: GrpoSection = GrpoSection()
    evaluation: EvaluationSection = EvaluationSection()
    tracking: TrackingSection = TrackingSection()
    health: HealthSection = HealthSection()
    budget: BudgetSection = BudgetSection()

    @property
    def tasks_per_step(self) -> int:
        return self.grpo.batch_size // self.grpo.group_size

    @model_validator(mode="after")
    def _rules(self) -> RunConfig:
        """Rules across fields; each message names every field it is about."""
        grpo, sft = self.grpo, self.sft
        problems = []
        if grpo.batch_size % grpo.group_size:
            problems.append(
                f"grpo.batch_size ({grpo.batch_size}) must be a multiple of "
                f"grpo.group_size ({grpo.group_size})"
            )
        if grpo.micro_batch_size and grpo.batch_size % grpo.micro_batch_size:
            problems.append(
                f"grpo.batch_size ({grpo.batch_size}) must be a multiple of "
                f"grpo.micro_batch_size ({grpo.micro_batch_size})"
            )
        if sft.steps and sft.rows < sft.batch_size:
            problems.append(f"sft.rows ({sft.rows}) must be at least sft.batch_size ({sft.batch_size})")
        if sft.max_steps < sft.steps:
            problems.append(f"sft.max_steps ({sft.max_steps}) must be at least sft.steps ({sft.steps})")
        if self.backend.name == "replay" and not self.backend.file:
            problems.append("backend.file must name the YAML file to play when backend.name is replay")
        if self.model.name != "tiny" and sft.steps:
            problems.append(f"sft.steps ({sft.steps}) must be 0 where model.name is a pretrained model")
        if self.model.name == "tiny" and self.model.lora:
            problems.append("model.lora needs a pretrained model: model.name is tiny")
        if problems:
            raise ValueError("; ".join(problems))
        return self
