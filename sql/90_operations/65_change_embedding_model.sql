-- Change of the embedding model, org by org. The command change-model (local/operations/change_model.py), which the operator runs
-- with the database's own URL, embeds every chunk again and writes the embeddings beside the present ones. When no chunk
-- of an org lacks one, it exchanges both in one transaction: each search sees either the former embeddings of the org or
-- the new ones. The former ones stay, so that the way back needs no new embeddings, until the operator deletes them.

create table rag.other_embeddings (
  org_id uuid not null,
  chunk_id uuid not null,
  embedding_model text not null check (length(embedding_model) between 1 and 100),
  embedding extensions.halfvec not null
    check (extensions.l2_norm(embedding) > 0 and extensions.vector_dims(embedding) between 256 and 3072),
  primary key (org_id, chunk_id),
  foreign key (org_id, chunk_id) references rag.chunks (org_id, id) on delete cascade
);

comment on table rag.other_embeddings is
  'Embeddings of chunks by another model than that of rag.chunks: the next one, or, after an org''s change, the former '
  'one. Only the database''s owner reads and writes them.';

alter table rag.other_embeddings enable row level security;
alter table rag.other_embeddings force row level security;

create policy "no user reads other embeddings" on rag.other_embeddings
  for all to authenticated using (false);

create function rag.chunks_to_embed(org_id uuid, model text, after uuid, max_items integer)
returns table (chunk_id uuid, title text, header text, content text, section text)
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select chunks.id, documents.title, chunks.metadata ->> 'header', chunks.content, chunks.metadata ->> 'section'
  from rag.chunks
  join rag.documents on documents.org_id = chunks.org_id and documents.id = chunks.document_id
  where chunks.org_id = chunks_to_embed.org_id and chunks.id > chunks_to_embed.after
    and chunks.embedding_model <> chunks_to_embed.model
    and not exists (
      select from rag.other_embeddings as other
      where other.org_id = chunks.org_id and other.chunk_id = chunks.id
        and other.embedding_model = chunks_to_embed.model)
  order by chunks.id
  limit max_items;
end;
$$;

comment on function rag.chunks_to_embed is
  'The chunks of an org, by id, that have no embedding of the model, with what the embedder reads: the document''s '
  'title, the chunk''s header, its text, its section.';

create function rag.put_other_embeddings(org_id uuid, model text, embeddings jsonb)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.other_embeddings as present (org_id, chunk_id, embedding_model, embedding)
  select chunks.org_id, chunks.id, model,
    rag.fit_dimensions(item.embedding, (select rag.dimensions_of(model)), 'embedding')
  from jsonb_to_recordset(embeddings) as item (chunk_id uuid, embedding extensions.halfvec)
  join rag.chunks on chunks.org_id = put_other_embeddings.org_id and chunks.id = item.chunk_id
  -- A chunk that is deleted meanwhile is left out.
  for key share of chunks
  on conflict on constraint other_embeddings_pkey
  do update set embedding_model = excluded.embedding_model, embedding = excluded.embedding;
$$;

comment on function rag.put_other_embeddings is
  'Store embeddings of the model, [{chunk_id, embedding}], in the place of other ones of these chunks.';

create function rag.exchange_embeddings(org_id uuid, model text)
returns bigint
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  -- A long tail outside of the HNSW index slows the org's searches until the worker has inserted it. Inserting more
  -- chunks in this transaction would make the org's writers wait longer. (57_chunks_outside_hnsw.sql)
  longest_tail constant bigint := 50000;
  to_exchange bigint;
  documents uuid[];
  segments uuid[];
begin
  if exists (
    select from rag.chunks_to_embed(org_id, model, '00000000-0000-0000-0000-000000000000', 1))
  then
    return null;
  end if;
  -- First, as each writer does: a writer that has begun ends before.
  perform from rag.documents where documents.org_id = org_id order by documents.id for no key update;
  select count(*) into to_exchange
  from rag.chunks where chunks.org_id = org_id and chunks.embedding_model <> model;
  -- A transaction that deletes chunks by itself has locked them, and waits for their document in a trigger.
  begin
    perform from rag.chunks
    where chunks.org_id = org_id and chunks.embedding_model <> model
    for no key update nowait;
  exception when lock_not_available then
    return -1;
  end;

  -- Below, the keyword index changes its model alone.
  perform set_config('rag.words_later', 'true', true);
  with former as materialized (
    select chunks.id, chunks.document_id, chunks.embedding_model, chunks.embedding
    from rag.chunks
    where chunks.org_id = org_id and chunks.embedding_model <> model
  ), changed as (
    update rag.chunks
    set embedding_model = model, embedding = other.embedding,
      in_hnsw = chunks.in_hnsw and to_exchange > longest_tail
    from former
    join rag.other_embeddings as other on other.org_id = org_id and other.chunk_id = former.id
      and other.embedding_model = model
    where chunks.org_id = org_id and chunks.id = former.id
    returning chunks.id, chunks.document_id
  ), kept as (
    update rag.other_embeddings as other
    set embedding_model = former.embedding_model, embedding = former.embedding
    from former
    join changed on changed.id = former.id
    where other.org_id = org_id and other.chunk_id = former.id
  )
  select array_agg(distinct changed.document_id), count(*) into documents, to_exchange
  from changed;
  perform set_config('rag.words_later', '', true);

  -- Documents with chunks of both models.
  perform rag.index_words(org_id, array(
    select terms.document_id
    from rag.document_terms as terms
    where terms.org_id = org_id and terms.document_id = any (documents)
    group by 1
    having count(*) > 1));
  update rag.document_terms set embedding_model = model
  where document_terms.org_id = org_id and document_terms.document_id = any (documents);
  -- Folding can no longer change the segments of these documents.
  segments := array(
    select distinct terms.segment
    from rag.document_terms as terms
    where terms.org_id = org_id and terms.document_id = any (documents) and terms.segment is not null);
  delete from rag.term_segments
  where term_segments.org_id = org_id and term_segments.segment = any (segments);
  insert into rag.term_segments (org_id, collection_id, owner_id, segment, config, embedding_model, documents, chunks, length)
  select org_id, terms.collection_id, terms.owner_id, terms.segment, terms.config, terms.embedding_model, count(*),
    sum(terms.chunks), sum(terms.length)
  from rag.document_terms as terms
  where terms.org_id = org_id and terms.segment = any (segments)
  group by 2, 3, 4, 5, 6;

  update rag.orgs set embedding_model = model where orgs.id = org_id;
  return to_exchange;
end;
$$;

comment on function rag.exchange_embeddings is
  'Replace all embeddings of an org by those of the model, and keep the former ones. Returns the number of chunks; '
  'without a change null if a chunk has no embedding of the model, and -1 while another transaction changes or deletes a chunk. '
  'Searches go on; a write that replaces or deletes the org''s documents waits.';

create function rag.embedding_progress(model text)
returns table (orgs bigint, changed_orgs bigint, chunks bigint, embedded_chunks bigint, tokens_to_embed bigint)
language sql stable security invoker set search_path = ''
as $$
  with counted as (
    select chunk.org_id, count(*) as chunks,
      count(*) filter (where chunk.embedding_model = embedding_progress.model) as changed,
      count(*) filter (where chunk.embedding_model <> embedding_progress.model and other.chunk_id is not null) as ready,
      sum(chunk.token_count) filter (
        where chunk.embedding_model <> embedding_progress.model and other.chunk_id is null) as tokens
    from rag.chunks as chunk
    left join rag.other_embeddings as other on other.org_id = chunk.org_id and other.chunk_id = chunk.id
      and other.embedding_model = embedding_progress.model
    group by chunk.org_id
  )
  select count(*), count(*) filter (where counted.changed = counted.chunks), coalesce(sum(counted.chunks), 0)::bigint,
    coalesce(sum(counted.changed + counted.ready), 0)::bigint, coalesce(sum(counted.tokens), 0)::bigint
  from counted;
$$;

comment on function rag.embedding_progress is
  'The progress of a change to the model: the orgs with chunks, and those that have changed; the chunks, and those '
  'with an embedding of the model; the tokens of the other chunks, as their documents'' embedder counted them, without '
  'titles and headers.';
