"""The six answer style presets of the platform contract (style_presets.toml)."""

from dataclasses import dataclass
from pathlib import Path

from shared.text.word_lists import read_toml


@dataclass(frozen=True, slots=True)
class Preset:
    """`temperature` and `max_tokens` are defaults for the request."""

    temperature: float
    max_tokens: int
    instruction: str


PRESETS = {name: Preset(*preset) for name, preset in read_toml(Path(__file__).with_suffix(".toml")).items()}
