-- Dimensions of embeddings. A model has 1,536 dimensions, or the number that the deployer set for it. Vectors of models
-- with different numbers are in one column, with one HNSW index for each number.

create function rag.dimensions_of(model text)
returns integer
language sql stable security invoker set search_path = ''
as $$
  select coalesce((settings.embedding_dimensions -> model)::integer, 1536) from rag.settings;
$$;

comment on function rag.dimensions_of is 'The dimensions of a model''s embeddings in the database.';

create function rag.fit_dimensions(embedding extensions.halfvec, dimensions integer, name text)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  given constant integer := extensions.vector_dims(embedding);
begin
  if given = dimensions or embedding is null then
    return embedding;
  elsif given > dimensions
    and extensions.l2_norm(extensions.subvector(embedding, dimensions + 1, given - dimensions)) = 0
  then
    return extensions.subvector(embedding, 1, dimensions);
  end if;
  raise exception '% must have % dimensions, not %', name, dimensions, given
    using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
end;
$$;

comment on function rag.fit_dimensions is
  'The embedding with the given number of dimensions, without zeros at its end that are too many. Raises PT400, with the '
  'name of the argument, for another number.';

create function rag.hnsw_index(dimensions integer)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select 'chunks_by_embedding_' || dimensions;
$$;

comment on function rag.hnsw_index is 'The name of the HNSW index of embeddings with that number of dimensions.';

create function rag.set_dimensions(model text, dimensions integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.settings set embedding_dimensions = embedding_dimensions || jsonb_build_object(model, dimensions);
  -- No chunk is stored between the check and the end of the transaction.
  lock table rag.chunks, rag.other_embeddings in share mode;
  if exists (
      select from rag.chunks
      where embedding_model = model and extensions.vector_dims(embedding) <> dimensions)
    or exists (
      select from rag.other_embeddings
      where embedding_model = model and extensions.vector_dims(embedding) <> dimensions)
  then
    raise exception 'There are embeddings of % with another number of dimensions. Set the number before the first one '
      'is stored.', model;
  end if;
  execute format('create index if not exists %I on rag.chunks '
    'using hnsw ((embedding::extensions.halfvec(%s)) extensions.halfvec_cosine_ops) '
    'where in_hnsw and extensions.vector_dims(embedding) = %s', rag.hnsw_index(dimensions), dimensions, dimensions);
end;
$$;

comment on function rag.set_dimensions is
  'For the deployer: store the embeddings of a model with 256 to 3,072 dimensions, and create the HNSW index for this '
  'number unless there is one. Raises an exception if the model has embeddings with another number. Writes wait '
  'meanwhile.';
