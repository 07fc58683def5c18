"""How long chunks are: as long as their collection says and what embeds them reads, or as that likes best."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reads:
    """How many tokens of a text an embedder reads at most, and how many a passage should have at most."""

    window: int
    passage_tokens: int


# What embeds here is one or the other (embed.py); known without loading either.
MINILM = Reads(window=256, passage_tokens=128)
OPENAI = Reads(window=8191, passage_tokens=512)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many tokens a chunk has at most, and how many of those before it repeats at most."""

    size: int
    overlap: int

    @classmethod
    def of(cls, reads: Reads, size: int | None, overlap: int | None) -> "Sizes":
        """Of what is wanted, what is done. The overlap is a tenth and at most fifty, or what is said and at
        most a half."""
        size = min(size or reads.passage_tokens, reads.window)
        return cls(size, min(50, size // 10) if overlap is None else min(overlap, size // 2))

    def within(self, room: int) -> "Sizes":
        size = min(self.size, room)
        return Sizes(size, min(self.overlap, size // 2))
