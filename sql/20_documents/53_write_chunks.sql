-- Chunks of documents: written from their spans, with the entities and relations that they name.

create type rag.document_chunks as (document_id uuid, chunks jsonb, embedding_model text);

comment on type rag.document_chunks is
  'The chunks that a document is to have, as an array of {span_start, span_end, token_count, embedding, metadata, '
  'names, relations} in reading order. The text of a chunk is that of its span, and metadata.header is that of the '
  'span from metadata.header_start to header_end (rag.cut_headers). names: its entities, {name, kind, surfaces, '
  'weight}; relations: their relations, {subject, type, object, confidence}. Without names the worker extracts both.';

create function rag.document_chunks(document_id uuid, chunks jsonb, embedding_model text)
returns rag.document_chunks
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (document_id, chunks, embedding_model);
end;
$$;

comment on function rag.document_chunks is 'The chunks of a document, from named fields.';

create function rag.delete_chunks(org_id uuid, document_ids uuid[])
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.chunks
  where chunks.org_id = delete_chunks.org_id and chunks.document_id = any (delete_chunks.document_ids);
$$;

comment on function rag.delete_chunks is
  'Delete the chunks of documents before others take their place. The caller has locked the documents'' rows: a second '
  'writer waits, and then replaces these chunks.';

create function rag.insert_chunks(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_full constant boolean := rag.is_hnsw_tail_full(insert_chunks.org_id);
begin
  perform rag.check_models(array(select chunked.embedding_model from unnest(insert_chunks.documents) as chunked));
  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding, metadata, in_hnsw)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, insert_chunks.first + item.position - 1,
    item.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, chunked.embedding_model,
    rag.fit_dimensions(fields.embedding, chunked.dimensions, 'embedding'),
    coalesce(fields.metadata, '{}') - 'header' || jsonb_strip_nulls(jsonb_build_object('header', item.header)), is_full
  from (
    select document.*, rag.dimensions_of(document.embedding_model) as dimensions
    from unnest(insert_chunks.documents) as document
    offset 0
  ) as chunked
  cross join lateral (
    select documents.*
    from rag.documents
    where documents.org_id = insert_chunks.org_id and documents.id = chunked.document_id
    -- Without this, the planner may call rag.cut_texts for other documents too, before it filters them out.
    offset 0
  ) as stored
  cross join rows from (jsonb_array_elements(chunked.chunks), unnest(rag.cut_texts(stored.content, chunked.chunks)),
    unnest(rag.cut_headers(stored.content, chunked.chunks))) with ordinality as item (body, content, header, position)
  cross join jsonb_to_record(item.body) as fields (span_start integer, span_end integer, token_count integer,
    embedding extensions.halfvec, metadata jsonb);

  if (
    select rag.is_in_graph(stored.org_id, stored.collection_id)
    from rag.documents as stored
    where stored.org_id = insert_chunks.org_id and stored.id = insert_chunks.documents[1].document_id)
  then
    perform rag.insert_names(insert_chunks.org_id, insert_chunks.documents, insert_chunks.first);
    perform rag.enqueue_extractions(insert_chunks.org_id, insert_chunks.documents, insert_chunks.first > 0);
  end if;
end;
$$;

comment on function rag.insert_chunks is
  'Insert chunks of documents of one collection, numbered from `first` on, with the texts of their spans. Each chunk '
  'repeats fields of its document''s row.';
