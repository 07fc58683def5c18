"""The six answer style presets of the platform contract."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """`temperature` and `max_tokens` are defaults for the request."""

    temperature: float
    max_tokens: int
    instruction: str


PRESETS = {
    "concise": Preset(0.3, 500, "Answer briefly and to the point: a few sentences at most."),
    "detailed": Preset(0.5, 2000, "Explain comprehensively, in well ordered paragraphs or lists."),
    "research": Preset(
        0.2,
        4000,
        "Answer as a researcher does: analyse thoroughly, weigh what the documents say for and against, name "
        "what they leave open, and say of each claim which document it is from.",
    ),
    "technical": Preset(
        0.1,
        3000,
        "Answer precisely, with every detail that matters and in the documents' exact terms: names, numbers, "
        "units, versions and commands as they stand there.",
    ),
    "creative": Preset(
        0.8,
        2000,
        "Answer in an exploring, inventive way. Ideas of your own are welcome where they are told apart from "
        "what the documents say.",
    ),
    "qna": Preset(
        0.4,
        4000,
        "Write questions with their answers on what the documents say: a quiz, multiple choice, or material "
        "for study, as it is asked for. Every right answer must stand in the documents.",
    ),
}
