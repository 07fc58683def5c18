-- Documents and chunks by their ids, with as much text as one response holds. Ids that the caller does not see, and ids
-- that do not exist, are left out alike.

create function rag.text_bytes(content text)
returns bigint
language sql immutable security invoker set search_path = ''
as $$
  select octet_length(to_json(content)::text);
$$;

comment on function rag.text_bytes is 'The number of bytes of a text in a JSON response.';

create function rag.first_chunks(org_id uuid, document_id uuid, room bigint, out chunks jsonb,
  out taken bigint, out complete boolean)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  parts jsonb[] := '{}';
  part record;
  size bigint;
begin
  taken := 0;
  complete := true;
  -- The loop stops reading texts when the response is full.
  for part in
    select present.id, present.document_id, present.ordinal, present.content as text, present.span_start,
      present.span_end
    from rag.chunks as present
    where present.org_id = first_chunks.org_id and present.document_id = first_chunks.document_id
    order by present.ordinal
  loop
    size := rag.text_bytes(part.text);
    complete := taken + size <= room;
    exit when not complete;
    taken := taken + size;
    parts := parts || to_jsonb(part);
  end loop;
  chunks := to_jsonb(parts);
end;
$$;

comment on function rag.first_chunks is
  'The first chunks of a document that take no more than `room` bytes together; complete: whether these are all.';

create function rag.contents_by_id(org_id uuid, kinds text[], ids uuid[], collection_id uuid)
returns table (content text, document jsonb, passage jsonb, id uuid)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select coalesce(document.content, passage.content) as content, document.shown as document,
    passage.shown as passage, requested.id
  from unnest(kinds, ids) with ordinality as requested (kind, id, position)
  left join lateral (
    select present.content, jsonb_build_object('id', present.id, 'collection_id', present.collection_id,
      'title', present.title, 'source_type', present.source_type, 'origin', present.origin, 'uri', present.uri,
      'author', present.author, 'state', present.state, 'labels', present.labels,
      'occurred_at', present.occurred_at, 'metadata', present.metadata,
      'notes', coalesce(present.processing_info -> 'notes', '[]')) as shown
    from rag.documents as present
    where requested.kind = 'document' and present.org_id = contents_by_id.org_id and present.id = requested.id
      and (contents_by_id.collection_id is null or present.collection_id = contents_by_id.collection_id)
    offset 0
  ) as document on true
  left join lateral (
    select present.content, jsonb_build_object('id', present.id, 'document_id', present.document_id,
      'ordinal', present.ordinal, 'span_start', present.span_start, 'span_end', present.span_end) as shown
    from rag.chunks as present
    where requested.kind = 'chunk' and present.org_id = contents_by_id.org_id and present.id = requested.id
      and (contents_by_id.collection_id is null or present.collection_id = contents_by_id.collection_id)
    offset 0
  ) as passage on true
  where document.shown is not null or passage.shown is not null
  order by requested.position;
end;
$$;

comment on function rag.contents_by_id is
  'The documents and chunks of these ids, in their order: the text, and the other fields as JSON. The parameters are '
  'those of rag_get_contents.';

create function public.rag_get_contents(
  org_id uuid, kinds text[], ids uuid[], collection_id uuid default null, text boolean default true,
  chunks boolean default false
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  -- Lambda returns at most six megabytes.
  room bigint := 4500000;
  documents jsonb[] := '{}';
  passages jsonb[] := '{}';
  own record;
  size bigint;
  fits boolean;
  parts jsonb;
  taken bigint;
  complete boolean;
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if ids is null or kinds is null or cardinality(ids) > 100 or cardinality(ids) <> cardinality(kinds) then
    raise exception 'ids must have at most 100 ids, and kinds a kind for each'
      using errcode = 'PT400', detail = 'invalid_ids';
  end if;
  for own in select * from rag.contents_by_id(org_id, kinds, ids, collection_id) loop
    room := room - octet_length(coalesce(own.document, own.passage)::text);
    -- A text that is larger than the whole response is not read.
    size := case when (text or own.document is null) and octet_length(own.content) <= room
      then rag.text_bytes(own.content) end;
    fits := coalesce(size <= room, false);
    if fits then
      room := room - size;
    end if;
    if own.passage is not null then
      passages := passages || (own.passage || jsonb_build_object('text', case when fits then own.content end));
      continue;
    end if;
    if chunks then
      select first.chunks, first.taken, first.complete into parts, taken, complete
      from rag.first_chunks(org_id, own.id, room) as first;
      room := room - taken;
    end if;
    documents := documents || (own.document || jsonb_build_object(
      'text', case when fits then own.content end, 'chunks', parts,
      'truncated', text and not fits or chunks and not complete));
  end loop;
  return jsonb_build_object('documents', to_jsonb(documents), 'chunks', to_jsonb(passages));
end;
$$;

comment on function public.rag_get_contents is
  'Documents and chunks by id. ids of documents and chunks, as their kinds say, of an org, or of one of its '
  'collections. text, chunks: whether documents come with these. In the order of the ids 4,500,000 bytes are given '
  'out: a text is whole or null, of chunks there are the first; where something did not fit, truncated is true. '
  'Ids that are not found are omitted. PT403 for a key without a scope that reads.';
