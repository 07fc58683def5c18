"""rag.phrase_proximity against its definition: the least distance among all positions of two words."""

import json
import random
from typing import Any

import pytest

from tests.actors import World

PAIRS = """
  with text as (
    select content, number, rag.words('pg_catalog.simple', content) as words
    from unnest(%s::text[]) with ordinality as text (content, number)
  ), pair as (
    select ('pg_catalog.simple'::regconfig::oid, first, second, gap, weight)::rag.word_pair as pair
    from jsonb_to_recordset(%s::jsonb) as pair (first text, second text, gap integer, weight double precision)
  ), query as (
    select (array(
      select (word, 0, 0, null, 0, 1, 1)::rag.query_term
      from pair cross join lateral unnest(array[(pair.pair).first, (pair.pair).second]) as word
    ), array(select pair from pair), 8, 1, 1, null)::rag.keyword_query as keywords
  )
"""
MEASURED = """
  select ids.number, closeness.closeness
  from query
  cross join rag.phrase_proximity(keywords,
    array(select lpad(number::text, 32, '0')::uuid from text order by number),
    array(select 'pg_catalog.simple'::regconfig::oid from text),
    array(select content from text order by number)
  ) as closeness
  cross join lateral (select ltrim(replace(closeness.id::text, '-', ''), '0')::bigint) as ids (number)
"""
DEFINED = """
  select text.number, sum((pair.pair).weight / (1 + (
      select min(abs(b - a - (pair.pair).gap)) from unnest(one.positions) as a, unnest(other.positions) as b
    ))) / 8
  from text
  cross join pair
  join lateral unnest(text.words) as one on one.lexeme = (pair.pair).first
  join lateral unnest(text.words) as other on other.lexeme = (pair.pair).second
  group by 1
"""


def rows(world: World, query: str, contents: list[str], pairs: list[dict[str, Any]]) -> dict[Any, Any]:
    return dict(world.sql(PAIRS + query, contents, json.dumps(pairs)))


def pair(first: str, second: str, gap: int = 1, weight: float = 1) -> dict[str, Any]:
    return {"first": first, "second": second, "gap": gap, "weight": weight}


@pytest.mark.parametrize("seed", range(3))
def test_closeness_is_the_least_distance_of_all_positions(world: World, seed: int):
    draw = random.Random(seed)  # noqa: S311  # not a secret
    words = [f"w{number}" for number in range(draw.choice([2, 5, 30]))]
    contents = [" ".join(draw.choices([*words, "other"], k=draw.choice([1, 3, 20, 200]))) for _ in range(40)]
    # Weights of few binary digits: their sums do not depend on the order.
    pairs = []
    for _ in range(draw.randint(1, 8)):
        first, second = draw.sample(words, 2)
        pairs.append(pair(first, second, draw.randint(1, 9), draw.choice([1, 2, 4])))
    defined = rows(world, DEFINED, contents, pairs)
    assert rows(world, MEASURED, contents, pairs) == pytest.approx(defined, rel=1e-14)


def test_texts_with_thousands_of_positions_fit_into_the_time_out_of_a_search(world: World):
    """Every pair of positions would be 320 million distances."""
    contents = ["one two " * 4000] * 20
    world.sql("set statement_timeout = '8s'")
    try:
        assert set(rows(world, MEASURED, contents, [pair("one", "two")]).values()) == {1 / 8}
    finally:
        world.sql("reset statement_timeout")
