-- Chunks: passages of documents with their embeddings, which searches return. A chunk repeats its document's owner and
-- filter fields, because under row security only columns of the scanned table, compared by leakproof operators (= on
-- uuid and text, < on timestamptz), reach an index. Only rag_put_documents writes chunks, from the row of the document,
-- so the copies cannot disagree.

create function rag.is_chunk_location(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select pg_column_size(value) <= 4000 and rag.is_metadata(value)
    and rag.is_whole(value -> 'page_number', 0, 2147483647) and rag.is_whole(value -> 'page_end', 0, 2147483647)
    and coalesce(jsonb_typeof(value -> 'section') = 'string', true);
$$;

comment on function rag.is_chunk_location is
  'Whether the value may be a chunk''s location in its document: page_number, page_end and section have the types '
  'that the functions rely on.';

create table rag.chunks (
  org_id uuid not null,
  id uuid not null default rag.time_ordered_id(),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  -- The keyword index has 22 bits for it.
  ordinal integer not null check (ordinal between 0 and 4194303),
  content text not null check (length(content) <= 100000 and rag.is_visible_text(content)),
  span_start integer not null check (span_start >= 0),
  span_end integer not null,
  token_count integer not null check (token_count >= 0),
  source_type text not null,
  lang text,
  occurred_at timestamptz,
  embedding_model text not null check (length(embedding_model) between 1 and 100),
  embedding extensions.halfvec not null
    check (extensions.l2_norm(embedding) > 0 and extensions.vector_dims(embedding) between 256 and 3072),
  metadata jsonb not null default '{}' check (rag.is_chunk_location(metadata)),
  in_hnsw boolean not null default true,
  primary key (org_id, id),
  -- With token_count, so that the sum of a document's tokens is read from the index alone.
  unique (org_id, document_id, ordinal) include (token_count),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (span_end > span_start)
);

comment on table rag.chunks is 'Passages of documents with their embeddings, which searches return.';
comment on column rag.chunks.content is 'The text of its span: rag.cut_texts.';
comment on column rag.chunks.span_start is 'Characters [span_start, span_end) of the document''s content.';
comment on column rag.chunks.embedding is
  'With the dimensions of its model (rag.dimensions_of). Shorter embeddings are padded with zeros, which leaves every '
  'cosine as it was.';
comment on column rag.chunks.metadata is
  'The position in the document: page_number, page_end, section; header, header_start, header_end (rag.cut_headers).';
comment on column rag.chunks.in_hnsw is
  'Whether the HNSW index has it; the worker adds chunks later (57_chunks_outside_hnsw.sql).';

-- Vectors are stored in the row: an exact scan reads every vector, and fetching each from TOAST takes 2 to 5
-- times as long. A page has room for two rows with 1,536 dimensions. A text that fits into half a page together with its
-- vector stays in the row; a longer text moves to TOAST.
alter table rag.chunks alter column embedding set storage plain;
alter table rag.chunks set (toast_tuple_target = 4080);

-- rag_match: counts and scans the rows that row security and the filters leave.
create index chunks_by_scope on rag.chunks (org_id, embedding_model, source_type, occurred_at)
  include (owner_id, lang, collection_id, document_id);

-- The same for one of an org's many collections.
create index chunks_by_collection on rag.chunks (org_id, collection_id, embedding_model)
  include (owner_id, lang, source_type, occurred_at, document_id);

-- rag_match, for orgs too large to scan. rag.set_dimensions creates the same for another number of dimensions.
create index chunks_by_embedding_1536 on rag.chunks
  using hnsw ((embedding::extensions.halfvec(1536)) extensions.halfvec_cosine_ops)
  where in_hnsw and extensions.vector_dims(embedding) = 1536;

-- rag_match and the worker: the chunks that are not in that index yet.
create index chunks_outside_hnsw on rag.chunks (org_id, embedding_model) where not in_hnsw;

call rag.admit_members('chunks');
call rag.restrict_keys('chunks', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('chunks');
call rag.require_edit('chunks');

create function rag.cut_texts(content text, chunks jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  bytes constant bytea := convert_to(content, 'UTF8');
  size constant integer := length(bytes);
  -- The first byte and the first character of each block, both counted from 0; last, the end of the text.
  first_bytes integer[] := array[0];
  first_characters integer[] := array[0];
  next_byte integer := 0;
  characters integer := 0;
  starts integer[];
  ends integer[];
begin
  for block in 1..(size + 4095) / 4096 loop
    next_byte := least(block * 4096, size);
    -- A character's bytes after its first begin with the bits 10.
    while next_byte < size and get_byte(bytes, next_byte) & 192 = 128 loop
      next_byte := next_byte + 1;
    end loop;
    characters := characters + length(convert_from(
      substring(bytes from first_bytes[block] + 1 for next_byte - first_bytes[block]), 'UTF8'));
    first_bytes[block + 1] := next_byte;
    first_characters[block + 1] := characters;
  end loop;
  select array_agg((item.body ->> 'span_start')::integer order by item.position),
    array_agg((item.body ->> 'span_end')::integer order by item.position)
  into starts, ends
  from jsonb_array_elements(chunks) with ordinality as item (body, position);
  if exists (
    select from unnest(starts, ends) as span (first, last)
    where (span.first >= 0 and span.last > span.first and span.last <= characters) is not true)
  then
    raise exception 'the span of a chunk must be within its document' using errcode = 'PT400', detail = 'span_outside';
  elsif (select sum(span.last - span.first) from unnest(starts, ends) as span (first, last))
    > greatest(8::bigint * characters, 1000000)
  then
    raise exception 'the chunks must have at most eight times the length of their document'
      using errcode = 'PT400', detail = 'spans_too_long';
  end if;
  return array(
    select substr(
      convert_from(substring(bytes from first_bytes[held.first] + 1
        for first_bytes[held.last + 1] - first_bytes[held.first]), 'UTF8'),
      span.first - first_characters[held.first] + 1, span.last - span.first)
    from unnest(starts, ends) with ordinality as span (first, last, position)
    cross join lateral (
      select width_bucket(span.first, first_characters) as first,
        width_bucket(span.last - 1, first_characters) as last
      offset 0
    ) as held
    order by span.position);
end;
$$;

comment on function rag.cut_texts is
  'The texts of chunks, {span_start, span_end} in characters of the document''s text, in their order. PT400 for a '
  'span that is not within the text, and for spans that repeat the text many times: a short call would need much '
  'memory. Postgres finds a character of a text by counting from its beginning: for every chunk of a long text, '
  'that takes quadratic time. Here the text is read once, in blocks of 4,096 bytes, and a chunk is cut from its '
  'blocks.';

create function rag.cut_headers(content text, chunks jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  spans jsonb;
  headers text[];
begin
  if not jsonb_path_exists(chunks, '$[*].metadata ? (exists(@.header_start) || exists(@.header_end))') then
    return null;
  elsif exists (
    select from jsonb_array_elements(chunks) as item (body)
    cross join lateral (
      select item.body -> 'metadata' -> 'header_start' as header_start,
        item.body -> 'metadata' -> 'header_end' as header_end
    ) as span
    where (span.header_start is not null or span.header_end is not null) and case
      when span.header_start is null or span.header_end is null then true
      when not rag.is_whole(span.header_start, 0, 2147483647) or not rag.is_whole(span.header_end, 0, 2147483647)
        then true
      else span.header_end::integer not between span.header_start::integer + 1 and span.header_start::integer + 500
        or span.header_end::integer > (item.body ->> 'span_start')::integer
    end)
  then
    raise exception 'the header of a chunk must be a span of at most 500 characters before the chunk'
      using errcode = 'PT400', detail = 'invalid_header';
  end if;
  -- Each header once: many chunks of a table have the same.
  select jsonb_agg(distinct jsonb_build_object('span_start', item.body -> 'metadata' -> 'header_start',
    'span_end', item.body -> 'metadata' -> 'header_end')) into spans
  from jsonb_array_elements(chunks) as item (body)
  where item.body -> 'metadata' ? 'header_start';
  headers := rag.cut_texts(content, spans);
  return array(
    select headers[span.position]
    from jsonb_array_elements(chunks) with ordinality as item (body, position)
    left join jsonb_array_elements(spans) with ordinality as span (body, position)
      on span.body -> 'span_start' = item.body -> 'metadata' -> 'header_start'
      and span.body -> 'span_end' = item.body -> 'metadata' -> 'header_end'
    order by item.position);
end;
$$;

comment on function rag.cut_headers is
  'For each chunk the header of its table, or the question that it answers, at most 500 characters; null for a chunk '
  'without one. metadata.header_start and metadata.header_end are its span, before the chunk. PT400 for another span.';
