-- Documents that come with their chunks: inserted or replaced in one transaction, so that no reader sees half of a
-- document. The functions of this project call them as their user; row security checks every row.

create type rag.new_document as (
  number integer, id uuid, owner_id uuid, external_id text, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb, content text,
  content_hash text, embedding_model text, chunks jsonb
);

comment on type rag.new_document is 'A document to store, and its number among those of the call.';

create type rag.stored_document as (number integer, document_id uuid, replaced boolean, chunk_count integer);

comment on type rag.stored_document is
  'A stored document: its number in the call, its id, and whether it replaced another.';

create function rag.stored_document(number integer, document_id uuid, replaced boolean, chunk_count integer)
returns rag.stored_document
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (number, document_id, replaced, chunk_count);
end;
$$;

comment on function rag.stored_document is 'A stored document from named fields.';

create function rag.new_documents(home rag.collections, documents jsonb)
returns rag.new_document[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  input record;
  document rag.new_document;
  new rag.new_document[];
begin
  for input in
    select item.number, item.body -> 'chunks' as chunks, fields.*
    from jsonb_array_elements(new_documents.documents) with ordinality as item (body, number),
      jsonb_to_record(item.body) as fields (external_id text, private boolean, source_type text, title text,
        uri text, lang text, occurred_at timestamptz, origin text, author text, state text, labels text[],
        metadata jsonb, content text, embedding_model text)
  loop
    document.number := input.number;
    document.id := rag.time_ordered_id();
    document.owner_id := case when input.private then rag.current_user_id() else home.owner_id end;
    document.external_id := input.external_id;
    document.source_type := coalesce(input.source_type, 'doc');
    document.title := input.title;
    document.uri := input.uri;
    document.lang := input.lang;
    document.occurred_at := input.occurred_at;
    document.origin := input.origin;
    document.author := input.author;
    document.state := input.state;
    document.labels := coalesce(input.labels, '{}');
    document.metadata := coalesce(input.metadata, '{}');
    document.content := input.content;
    document.content_hash := encode(sha256(convert_to(input.content, 'UTF8')), 'hex');
    document.embedding_model := input.embedding_model;
    document.chunks := input.chunks;
    new := new || document;
  end loop;
  return new;
end;
$$;

comment on function rag.new_documents is
  'The documents of a call as rows. The owner of private documents is the caller.';

create function rag.put_documents(home rag.collections, new rag.new_document[],
  only_present boolean default false)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made uuid[] := '{}';
  absent rag.new_document[] := new;
  present uuid[];
  stored rag.stored_document[] := '{}';
begin
  perform rag.require_access(home.id, 'edit');
  if exists (
    select from unnest(new) as input
    where octet_length(input.content) > (select (rag.org_tier(home.org_id)).file_bytes)
  ) then
    raise exception 'The text is larger than the tier of your org allows. Send a shorter text.'
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
  for attempt in 1..10 loop
    if not only_present then
      made := made || rag.insert_documents(home, absent);
      stored := stored || array(
        select rag.stored_document(number => input.number, document_id => input.id, replaced => false,
          chunk_count => jsonb_array_length(input.chunks))
        from unnest(absent) as input
        where input.id = any (made));
      absent := array(select input from unnest(absent) as input where input.id <> all (made));
      exit when absent = '{}';
    end if;
    -- Locked in one order, so that of two calls that replace the same documents one waits for the other.
    present := array(
      select documents.id
      from rag.documents
      where documents.org_id = home.org_id
        and documents.id = any (array(select target.document_id from rag.resolve_documents(home, absent) as target))
      order by documents.id
      for update);
    stored := stored || array(
      select rag.stored_document(number => target.number, document_id => target.document_id,
        replaced => target.document_id <> all (made), chunk_count => jsonb_array_length(input.chunks))
      from rag.resolve_documents(home, absent) as target
      join unnest(absent) as input on input.number = target.number
      where target.document_id = any (present));
    -- A document that another call deleted before it was locked is created again.
    absent := array(
      select input from unnest(absent) as input
      where input.number not in (select entry.number from unnest(stored) as entry));
    exit when only_present or absent = '{}';
  end loop;
  if not only_present and absent <> '{}' then
    raise exception 'Other calls are deleting these documents. Please try again.'
        using errcode = 'PT409', detail = 'conflict';
  end if;

  perform rag.replace_documents(home.org_id, new, array(
    select entry from unnest(stored) as entry where entry.replaced));
  perform rag.insert_chunks(home.org_id, array(
    select rag.document_chunks(
      document_id => entry.document_id, chunks => input.chunks, embedding_model => input.embedding_model)
    from unnest(stored) as entry
    join unnest(new) as input on input.number = entry.number), 0);
  return query select entry.* from unnest(stored) as entry order by entry.number;
end;
$$;

comment on function rag.put_documents is
  'Store documents, each in place of the one of its name and owner; no two have the same. only_present: documents '
  'that do not exist are skipped.';

create function rag.resolve_documents(home rag.collections, new rag.new_document[])
returns table (number integer, document_id uuid)
language sql stable security invoker set search_path = ''
  -- Without statistics, all indexes that begin with the org cost the same, and a look-up by name might read all
  -- documents of the org. Only documents_external_id has the order of names. Postgres 16 also scans a small table for
  -- each id.
  set enable_sort = off set enable_seqscan = off
as $$
  select input.number, target.id
  from unnest(new) as input
  cross join lateral (
    select documents.id, input.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.id = input.id
    union all
    (select documents.id, documents.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = input.owner_id and documents.external_id >= input.external_id
    order by documents.owner_id, documents.external_id
    limit 1)
    union all
    (select documents.id, documents.external_id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and input.owner_id is null and documents.external_id >= input.external_id
    order by documents.owner_id, documents.external_id
    limit 1)
  ) as target (id, external_id)
  where target.external_id is not distinct from input.external_id;
$$;

comment on function rag.resolve_documents is
  'The existing documents that a call replaces, by their ids, or by name and owner. Each is a look-up in an index '
  'of its own: for a name, the first document from this name on in the order of names.';

create function rag.insert_documents(home rag.collections, new rag.new_document[])
returns uuid[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  made uuid[];
begin
  with inserted as (
    insert into rag.documents (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang,
      occurred_at, origin, author, state, labels, metadata, content, content_hash, created_at, updated_at)
    select home.org_id, input.id, home.id, input.owner_id, input.external_id, input.source_type, input.title,
      input.uri, input.lang, input.occurred_at, input.origin, input.author, input.state, input.labels,
      input.metadata, input.content, input.content_hash,
      -- Lists show them in the order in which they came.
      now() + input.number * interval '1 microsecond', now() + input.number * interval '1 microsecond'
    from unnest(new) as input
    order by input.external_id
    on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null do nothing
    returning documents.id
  )
  select coalesce(array_agg(inserted.id), '{}') into made from inserted;
  if made <> '{}' then
    perform rag.check_document_quota(home);
  end if;
  return made;
end;
$$;

comment on function rag.insert_documents is 'Insert new documents; their ids.';

create function rag.replace_documents(org_id uuid, new rag.new_document[], present rag.stored_document[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if present = '{}' then
    return;
  end if;
  -- The words of all these documents leave the index with their chunks, below: two statements that remove words might wait
  -- for those of another call.
  perform set_config('rag.words_later', 'true', true);
  update rag.documents as renewed
  set source_type = input.source_type, title = input.title, uri = input.uri, lang = input.lang,
    occurred_at = input.occurred_at, origin = input.origin, author = input.author, state = input.state,
    labels = input.labels, metadata = input.metadata, content = input.content,
    content_hash = input.content_hash, status = 'completed', error_code = null, error_message = null,
    updated_at = clock_timestamp()
  from unnest(present) as entry
  join unnest(new) as input on input.number = entry.number
  where renewed.org_id = replace_documents.org_id and renewed.id = entry.document_id;
  perform set_config('rag.words_later', '', true);

  delete from rag.jobs
  using unnest(present) as entry
  where jobs.org_id = replace_documents.org_id and jobs.document_id = entry.document_id
    and jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running');
  delete from rag.originals
  using unnest(present) as entry
  where originals.org_id = replace_documents.org_id and originals.document_id = entry.document_id;
  perform rag.delete_chunks(replace_documents.org_id, array(select entry.document_id from unnest(present) as entry));
end;
$$;

comment on function rag.replace_documents is
  'Replace the fields of existing documents, and delete their chunks, originals and unfinished ingestion jobs, which '
  'are older.';
