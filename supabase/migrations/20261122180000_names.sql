-- Collections and documents by the names that callers give them: sql/67, which is new. Many documents are put at once,
-- matches say what their documents are called and where in them they stand: sql/20, 54, 55, 57 and 59.

alter table rag.collections add column loads text check (length(loads) between 1 and 255);

alter type rag.filters add attribute collection text;

alter type rag.found add attribute external_id text, add attribute place jsonb;

drop function public.rag_metrics();
drop function rag.ensure_collection(uuid, uuid, text);
drop function rag.replace_chunks(uuid, uuid, jsonb, text);

-- Whose own the name says that a collection is, by its last segment alone: ":u:" and a user's id. Null where it says
-- no user: every other name is the org's to use.
create function rag.user_named(name text)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select substring(user_named.name from ':u:([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')::uuid;
$$;

-- Raises PT403 for a name that says it is another user's own, unless an admin asks.
create function rag.check_user_named(org_id uuid, name text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if name ~ ':u:[^:]*$' and rag.user_named(name) is distinct from auth.uid()
    and check_user_named.org_id not in (select rag.admin_org_ids())
  then
    raise exception 'this name belongs to another user' using errcode = 'PT403', detail = 'another_users_name';
  end if;
end;
$$;

-- The collection that the name means to the caller, and nothing where there is none: the one of the user whom the name
-- says, else the caller's own before the org's. One that is being loaded has no name yet.
create function rag.collection_named(org_id uuid, name text)
returns setof rag.collections
language sql stable security invoker set search_path = ''
as $$
  select collections.*
  from rag.collections
  where collections.org_id = collection_named.org_id and collections.name = collection_named.name
    and collections.loads is null
    and case when rag.user_named(collection_named.name) is null
      then collections.owner_id is null or collections.owner_id = auth.uid()
      else collections.owner_id = rag.user_named(collection_named.name) end
  order by collections.owner_id nulls last
  limit 1;
$$;

-- The same, made when it is new.
create function rag.ensure_collection(org_id uuid, name text)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  home rag.collections;
begin
  perform rag.check_user_named(ensure_collection.org_id, ensure_collection.name);
  for attempt in 1..2 loop
    select * into home from rag.collection_named(ensure_collection.org_id, ensure_collection.name);
    exit when found;
    if ensure_collection.name ~ ':u:[^:]*$' and rag.user_named(ensure_collection.name) is null then
      raise exception 'the name ends in no user''s id' using errcode = 'PT400', detail = 'invalid_name';
    end if;
    perform rag.require_room_for_a_collection(ensure_collection.org_id);
    -- Two writers may meet here: the second inserts nothing and reads what the first made.
    insert into rag.collections (org_id, owner_id, name)
    values (ensure_collection.org_id, rag.user_named(ensure_collection.name), ensure_collection.name)
    on conflict do nothing;
  end loop;
  return home;
end;
$$;

revoke all on function rag.user_named(text), rag.check_user_named(uuid, text), rag.collection_named(uuid, text),
  rag.ensure_collection(uuid, text) from public, anon, service_role;
grant execute on function rag.user_named(text), rag.check_user_named(uuid, text), rag.collection_named(uuid, text),
  rag.ensure_collection(uuid, text) to authenticated;

-- {"total", "collections": [...]}: a page of those that the caller sees, and how many there are.
create or replace function public.rag_list_collections(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  "order" text default 'desc'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'name', 'document_count']);
  return (
    with placed as (
      select shown.*, count(*) over () as total, row_number() over (
        order by case sort_by when 'name' then shown.name end, case sort_by
          when 'created_at' then shown.created_at end, case sort_by
          when 'document_count' then shown.document_count end, shown.id) as place
      from rag.collections
      cross join lateral rag.shown(collections) as shown
      where collections.org_id = any (array(select rag.current_org_ids())) and collections.loads is null
    ), page as (
      select placed.*, case "order" when 'desc' then -place else place end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'collections', coalesce(jsonb_agg(to_jsonb(page) - array['total', 'place', 'turn'] order by page.turn), '[]'))
    from page);
end;
$$;

-- The hits as rows, in their order.
create or replace function rag.show(hits rag.hit[], exact boolean, considered integer)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select hit.chunk_id, hit.document_id, hit.org_id, hit.ordinal, hit.content, hit.span_start, hit.span_end,
    hit.similarity, hit.word_score, hit.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered,
    documents.external_id, stood.place
  from unnest(hits) with ordinality as hit (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, place)
  join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  -- Offset 0 keeps this a look-up of each.
  cross join lateral (
    select chunks.metadata as place
    from rag.chunks
    where chunks.org_id = hit.org_id and chunks.id = hit.chunk_id
    offset 0
  ) as stood
  order by hit.place;
end;
$$;

-- A document as it comes, and its place among those that come with it.
create type rag.new_document as (
  place integer, id uuid, owner_id uuid, external_id text, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb, content text,
  content_hash text, embedding_model text, chunks jsonb
);

-- What became of it.
create type rag.stored as (place integer, document_id uuid, replaced boolean, chunk_count integer);

-- The chunks that a document is to have, as an array of {content, span_start, span_end, token_count, embedding,
-- metadata} in reading order.
create type rag.chunked as (document_id uuid, chunks jsonb, embedding_model text);

-- document: org_id, title, content, content_hash and embedding_model; optionally external_id, collection
-- (a name, "default" unless given), private (true: only the caller and the org's admins see it),
-- source_type, uri, lang, occurred_at, origin, author, state, labels, metadata. A private and a shared document
-- of one external_id are two documents: to make one private, put it as private and delete the shared one.
create or replace function public.rag_put_document(document jsonb, chunks jsonb)
returns table (document_id uuid, replaced boolean, chunk_count integer)
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  org_id constant uuid := rag_put_document.document ->> 'org_id';
  home rag.collections;
begin
  -- Row security would refuse the rows as well, but with an error that reads like a fault of ours.
  if org_id is null or org_id not in (select rag.current_org_ids()) then
    raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
  end if;
  home := rag.ensure_collection(org_id, coalesce(rag_put_document.document ->> 'collection', 'default'));
  return query
  select stored.document_id, stored.replaced, stored.chunk_count
  from rag.put_documents(home, rag.new_documents(home, jsonb_build_array(
    rag_put_document.document || jsonb_build_object('chunks', rag_put_document.chunks)))) as stored;
end;
$$;

-- The documents as rows. Where they are private the caller is their owner.
create function rag.new_documents(home rag.collections, documents jsonb)
returns rag.new_document[]
language sql volatile security invoker set search_path = ''
as $$
  select array_agg((item.place, gen_random_uuid(),
    case when fields.private then auth.uid() else home.owner_id end, fields.external_id,
    coalesce(fields.source_type, 'doc'), fields.title, fields.uri, fields.lang, fields.occurred_at, fields.origin,
    fields.author, fields.state, coalesce(fields.labels, '{}'), coalesce(fields.metadata, '{}'), fields.content,
    fields.content_hash, fields.embedding_model, item.body -> 'chunks')::rag.new_document order by item.place)
  from jsonb_array_elements(new_documents.documents) with ordinality as item (body, place),
    jsonb_to_record(item.body) as fields (external_id text, private boolean, source_type text, title text,
      uri text, lang text, occurred_at timestamptz, origin text, author text, state text, labels text[],
      metadata jsonb, content text, content_hash text, embedding_model text);
$$;

-- Store them, each in the place of the one of its name and owner; no two have the same. only_present: of those that
-- are not there nothing is stored, nor said.
create function rag.put_documents(home rag.collections, new rag.new_document[],
  only_present boolean default false)
returns setof rag.stored
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made uuid[] := '{}';
  absent rag.new_document[] := new;
  present uuid[];
  stored rag.stored[];
begin
  if exists (
    select from unnest(new) as input
    where octet_length(input.content) > (rag.tier_of(home.org_id)).file_bytes
  ) then
    raise exception 'this org''s tier takes no texts of that size' using errcode = 'PT413', detail = 'file_too_large';
  end if;
  for attempt in 1..10 loop
    if not only_present then
      made := made || rag.insert_documents(home, absent);
    end if;
    -- Locked in one order, so that of two who replace the same documents one waits for the other.
    present := array(
      select documents.id
      from rag.documents
      where documents.org_id = home.org_id
        and documents.id = any (array(select found.document_id from rag.documents_meant(home, new) as found))
      order by documents.id
      for update);
    select coalesce(array_agg((found.place, found.document_id, found.document_id <> all (made),
      jsonb_array_length(input.chunks))::rag.stored order by found.place), '{}') into stored
    from rag.documents_meant(home, new) as found
    join unnest(new) as input on input.place = found.place
    where found.document_id = any (present);
    -- One that was there, and that somebody deleted before it was locked, is made anew.
    absent := array(
      select input from unnest(new) as input
      where input.place not in (select kept.place from unnest(stored) as kept));
    exit when only_present or absent = '{}';
  end loop;
  if not only_present and absent <> '{}' then
    raise exception 'somebody deletes these documents again and again' using errcode = 'PT409', detail = 'conflict';
  end if;

  perform rag.replace_documents(home.org_id, new, array(
    select kept from unnest(stored) as kept where kept.replaced));
  perform rag.replace_chunks(home.org_id, array(
    select (kept.document_id, input.chunks, input.embedding_model)::rag.chunked
    from unnest(stored) as kept
    join unnest(new) as input on input.place = kept.place));
  return query select kept.* from unnest(stored) as kept;
end;
$$;

-- Which documents they are: by their own ids, or by name and owner. Each way is a look-up in an index of its own, which
-- one condition for all of them would not be.
create function rag.documents_meant(home rag.collections, new rag.new_document[])
returns table (place integer, document_id uuid)
language sql stable security invoker set search_path = ''
as $$
  select input.place, found.id
  from unnest(new) as input
  cross join lateral (
    select documents.id
    from rag.documents
    where documents.org_id = home.org_id and documents.id = input.id
    union
    select documents.id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = input.owner_id and documents.external_id = input.external_id
    union
    select documents.id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and input.owner_id is null and documents.external_id = input.external_id
  ) as found;
$$;

-- Those that are new; their ids.
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
      now() + input.place * interval '1 microsecond', now() + input.place * interval '1 microsecond'
    from unnest(new) as input
    order by input.external_id
    on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null do nothing
    returning documents.id
  )
  select coalesce(array_agg(inserted.id), '{}') into made from inserted;
  if made <> '{}' then
    perform rag.require_room_for_a_document(home);
  end if;
  return made;
end;
$$;

-- What was said of them before is gone, and so is what was brought and is still to be worked on: it is older.
create function rag.replace_documents(org_id uuid, new rag.new_document[], present rag.stored[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if present = '{}' then
    return;
  end if;
  update rag.documents as renewed
  set source_type = input.source_type, title = input.title, uri = input.uri, lang = input.lang,
    occurred_at = input.occurred_at, origin = input.origin, author = input.author, state = input.state,
    labels = input.labels, metadata = input.metadata, content = input.content,
    content_hash = input.content_hash, status = 'completed', error_code = null, error_message = null,
    updated_at = clock_timestamp()
  from unnest(present) as kept
  join unnest(new) as input on input.place = kept.place
  where renewed.org_id = replace_documents.org_id and renewed.id = kept.document_id;

  delete from rag.jobs
  using unnest(present) as kept
  where jobs.org_id = replace_documents.org_id and jobs.document_id = kept.document_id
    and jobs.state in ('waiting', 'running');
  delete from rag.originals
  using unnest(present) as kept
  where originals.org_id = replace_documents.org_id and originals.document_id = kept.document_id;
end;
$$;

-- Documents' chunks, in the place of those that they had. Whoever calls this holds the documents' rows: a second
-- writer waits for them, and then replaces these. It repeats the document's row in them.
create function rag.replace_chunks(org_id uuid, documents rag.chunked[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if exists (
    select from unnest(replace_chunks.documents) as chunked
    join rag.documents as stored
      on stored.org_id = replace_chunks.org_id and stored.id = chunked.document_id
    cross join jsonb_array_elements(chunked.chunks) as item (body)
    where (item.body ->> 'span_end')::integer > length(stored.content)
  ) then
    raise exception 'a chunk ends behind its document' using errcode = 'PT400', detail = 'span_outside';
  end if;

  delete from rag.chunks
  using unnest(replace_chunks.documents) as chunked
  where chunks.org_id = replace_chunks.org_id and chunks.document_id = chunked.document_id;

  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding, metadata)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, item.position - 1,
    fields.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, chunked.embedding_model, fields.embedding,
    coalesce(fields.metadata, '{}')
  from unnest(replace_chunks.documents) as chunked
  join rag.documents as stored on stored.org_id = replace_chunks.org_id and stored.id = chunked.document_id
  cross join jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
  cross join jsonb_to_record(item.body) as fields (content text, span_start integer, span_end integer,
    token_count integer, embedding extensions.halfvec(1536), metadata jsonb);
end;
$$;

-- True when it was there to delete; another org's document is not there.
create or replace function public.rag_delete_document(document_id uuid)
returns boolean
language sql volatile security invoker set search_path = ''
as $$
  with gone as (
    delete from rag.documents
    where org_id = any (array(select rag.current_org_ids())) and id = rag_delete_document.document_id
    returning 1
  )
  select exists (select from gone);
$$;

revoke all on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid),
  rag.new_documents(rag.collections, jsonb), rag.put_documents(rag.collections, rag.new_document[], boolean),
  rag.insert_documents(rag.collections, rag.new_document[]), rag.documents_meant(rag.collections, rag.new_document[]),
  rag.replace_documents(uuid, rag.new_document[], rag.stored[]), rag.replace_chunks(uuid, rag.chunked[])
  from public, anon, service_role;
grant execute on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid),
  rag.new_documents(rag.collections, jsonb), rag.put_documents(rag.collections, rag.new_document[], boolean),
  rag.insert_documents(rag.collections, rag.new_document[]), rag.documents_meant(rag.collections, rag.new_document[]),
  rag.replace_documents(uuid, rag.new_document[], rag.stored[]), rag.replace_chunks(uuid, rag.chunked[])
  to authenticated;

-- The document as it was read, in place of what was there before: found from now on. document: title, content,
-- content_hash, embedding_model, processing_info; filename, content_type, size_bytes and the fields that a search
-- filters by, where they are known; bytes, in base64, that an address gave. chunks: as rag_put_document takes them.
create or replace function public.rag_complete_job(document jsonb, chunks jsonb)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  held constant rag.jobs := rag.held_job();
  input record;
  -- What was changed since the document was brought is not changed back.
  changed constant boolean := (
    select documents.updated_at > held.created_at
    from rag.documents
    where documents.org_id = held.org_id and documents.id = held.document_id);
begin
  select * into input from jsonb_to_record(rag_complete_job.document) as fields (
    source_type text, title text, uri text, lang text, occurred_at timestamptz, origin text, author text,
    state text, labels text[], metadata jsonb, filename text, content_type text, size_bytes bigint,
    content text, content_hash text, embedding_model text, processing_info jsonb, bytes text);

  if not changed then
    update rag.documents as renewed
    set source_type = coalesce(input.source_type, 'doc'), title = input.title, uri = input.uri,
      lang = input.lang, occurred_at = input.occurred_at, origin = input.origin, author = input.author,
      state = input.state, labels = coalesce(input.labels, '{}'), metadata = coalesce(input.metadata, '{}')
    where renewed.org_id = held.org_id and renewed.id = held.document_id;
  end if;
  update rag.documents as renewed
  set filename = input.filename, content_type = input.content_type, size_bytes = input.size_bytes,
    content = input.content, content_hash = input.content_hash, status = 'completed', error_code = null,
    error_message = null, processing_info = coalesce(input.processing_info, '{}'),
    updated_at = clock_timestamp()
  where renewed.org_id = held.org_id and renewed.id = held.document_id;

  if input.bytes is not null then
    update rag.originals
    set bytes = decode(input.bytes, 'base64')
    where originals.org_id = held.org_id and originals.document_id = held.document_id
      and originals.url is not null;
  end if;
  perform rag.replace_chunks(held.org_id, array[(held.document_id, chunks, input.embedding_model)::rag.chunked]);
  update rag.jobs
  set state = 'done', lease = null, step = null, error_code = null, error_message = null,
    finished_at = clock_timestamp()
  where jobs.org_id = held.org_id and jobs.id = held.id;
  return jsonb_array_length(chunks);
end;
$$;

-- Collections and documents by the names that callers give them, for APIs that know no ids: an index or a namespace is
-- a collection, and a document goes by its external_id, or by its id where it came through another API and has none.
-- Of several orgs the caller's token must say which: an API key does.

-- What the caller calls the document.
create function rag.name_of(document rag.documents)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(document.external_id, document.id::text);
$$;

-- The collection of that name; PT404 where there is none, PT403 for another user's own.
create function rag.require_collection(name text)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.org_meant(null);
  home rag.collections;
begin
  perform rag.check_user_named(org_id, require_collection.name);
  select * into home from rag.collection_named(org_id, require_collection.name);
  if not found then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

-- Its documents of those names: one that is the caller's own before the shared one, and one that is called so before
-- the one that has it for its id.
create function rag.documents_named(home rag.collections, names text[])
returns setof rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select distinct on (name) (found.document).*
  from unnest(names) as name
  cross join lateral (
    select documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = auth.uid() and documents.external_id = name
    union all
    select documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = home.owner_id and documents.external_id = name
    union all
    select documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id is null and documents.external_id = name
    union all
    select documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.external_id is null
      and documents.id = case
        when name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then name::uuid end
  ) as found (document)
  order by name, (found.document).owner_id nulls last, (found.document).external_id nulls last;
end;
$$;

-- Without counting its documents, which would take longer than whatever it is asked for.
create function public.rag_find_collection(name text)
returns table (id uuid, org_id uuid, owner_id uuid, name text, description text, metadata jsonb, config jsonb)
language sql stable security invoker set search_path = ''
as $$
  select home.id, home.org_id, home.owner_id, home.name, home.description, home.metadata, home.config
  from rag.require_collection(rag_find_collection.name) as home;
$$;

-- The names of all collections that the caller can name, in their order.
create function public.rag_list_names()
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(distinct collections.name), '[]')
  from rag.collections
  where collections.org_id = rag.org_meant(null) and collections.loads is null
    and collections.id = (select named.id from rag.collection_named(collections.org_id, collections.name) as named);
$$;

-- Those of the collection's documents that have such names, as far as it takes to know whether they are the same.
create function public.rag_find_documents(collection text, names text[])
returns table (name text, document_id uuid, content_hash text, metadata jsonb)
language sql stable security invoker set search_path = ''
as $$
  select rag.name_of(found), found.id, found.content_hash, found.metadata
  from rag.documents_named(rag.require_collection(rag_find_documents.collection), rag_find_documents.names) as found;
$$;

-- Store documents in the collection, which is made when it is new: each in the place of the one of its name.
-- documents: as rag_put_document takes one, each with its chunks and no two with one external_id. only_present: those
-- that are not there are passed over. place counts from 1.
create function public.rag_put_documents(collection text, documents jsonb, only_present boolean default false)
returns setof rag.stored
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home rag.collections;
  wanted rag.new_document[];
begin
  if rag_put_documents.only_present then
    home := rag.require_collection(rag_put_documents.collection);
  else
    perform rag.check_name(rag_put_documents.collection);
    home := rag.ensure_collection(rag.org_meant(null), rag_put_documents.collection);
  end if;
  wanted := rag.new_documents(home, rag_put_documents.documents);
  if rag_put_documents.only_present then
    for place in 1..coalesce(cardinality(wanted), 0) loop
      -- By id alone: the one that has the name may be anybody's.
      wanted[place].id := (
        select found.id from rag.documents_named(home, array[wanted[place].external_id]) as found);
      wanted[place].external_id := null;
    end loop;
  end if;
  return query select stored.* from rag.put_documents(home, wanted, rag_put_documents.only_present) as stored;
end;
$$;

-- {"total", "documents": [{name, document_id, content, is_truncated, content_hash, metadata, title, source_type, uri,
-- status, created_at, updated_at}]}: a page, the oldest first, of the documents whose metadata have all these values,
-- with so many characters of their texts, and how many there are.
create function public.rag_list_named(
  collection text, "limit" integer, "offset" integer default 0, characters integer default null,
  metadata jsonb default '{}'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  home constant rag.collections := rag.require_collection(rag_list_named.collection);
  facets constant uuid[] := array(
    select rag.facet('metadata.' || entry.key, entry.value) from jsonb_each(rag_list_named.metadata) as entry);
begin
  return (
    with listed as (
      select documents.id, documents.created_at
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id
        -- An admin sees more, but not by these names.
        and (documents.owner_id is null or documents.owner_id = any (array[auth.uid(), home.owner_id]))
        and not exists (
          select from unnest(facets) as asked (facet)
          where not exists (
            select from rag.facets as own
            where own.org_id = home.org_id and own.document_id = documents.id and own.facet = asked.facet))
    ), page as (
      select listed.*
      from listed
      order by listed.created_at, listed.id
      limit least("limit", 1000) offset "offset"
    )
    select jsonb_build_object('total', (select count(*) from listed), 'documents', coalesce(jsonb_agg(
      jsonb_build_object(
        'name', rag.name_of(documents), 'document_id', documents.id,
        'content', left(documents.content, coalesce(characters, length(documents.content))),
        'is_truncated', coalesce(length(documents.content) > characters, false),
        'content_hash', documents.content_hash, 'metadata', documents.metadata, 'title', documents.title,
        'source_type', documents.source_type, 'uri', documents.uri, 'status', documents.status,
        'created_at', documents.created_at, 'updated_at', documents.updated_at)
      order by page.created_at, page.id), '[]'))
    from page
    join rag.documents on documents.org_id = home.org_id and documents.id = page.id);
end;
$$;

-- Delete those of the collection's documents that have such names; their names.
create function public.rag_delete_named(collection text, names text[])
returns setof text
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.require_collection(rag_delete_named.collection);
  present constant uuid[] := array(select found.id from rag.documents_named(home, names) as found);
begin
  -- In the order in which writers lock them.
  perform from (
    select from rag.documents where documents.org_id = home.org_id and documents.id = any (present)
    order by documents.id
    for update
  ) as locked;
  return query
  delete from rag.documents as gone
  where gone.org_id = home.org_id and gone.id = any (present)
  returning rag.name_of(gone);
end;
$$;

revoke all on function rag.name_of(rag.documents), rag.require_collection(text),
  rag.documents_named(rag.collections, text[]), public.rag_find_collection(text), public.rag_list_names(),
  public.rag_find_documents(text, text[]), public.rag_put_documents(text, jsonb, boolean),
  public.rag_list_named(text, integer, integer, integer, jsonb), public.rag_delete_named(text, text[])
  from public, anon, service_role;
grant execute on function rag.name_of(rag.documents), rag.require_collection(text),
  rag.documents_named(rag.collections, text[]), public.rag_find_collection(text), public.rag_list_names(),
  public.rag_find_documents(text, text[]), public.rag_put_documents(text, jsonb, boolean),
  public.rag_list_named(text, integer, integer, integer, jsonb), public.rag_delete_named(text, text[])
  to authenticated;

alter table rag.request_counts
  drop constraint request_counts_function_check,
  add constraint request_counts_function_check check (
    function in ('rag-search', 'rag-answer', 'api-keys', 'collections', 'documents', 'webhooks', 'indexes',
      'index-query', 'index-snapshots', 'chat-completions', 'knowledge'));

-- What the index and knowledge APIs did, counted and timed where every instance can see it: what /metrics sums over
-- all users. Each user has rows of their own, so that nobody waits for others, and writes no others.

-- Where the buckets of a histogram end; of a counter there are none. Null for what nobody measures.
create function rag.bounds_of(measure text)
returns double precision[]
language sql immutable security invoker set search_path = ''
as $$
  select case
    when bounds_of.measure ~ '^rag_(query|retrieve|chat|index|indexes|indexes_document|indexes_update_document|indexes_delete_document|persist|load|delete_index)_(requests_total|latency_seconds)$'
      then case when bounds_of.measure like '%seconds'
        then '{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60}' else '{}' end
    when bounds_of.measure = 'gateway_knowledge_retrieval_score'
      then '{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}'
    when bounds_of.measure ~ '^gateway_knowledge_(chunks_retrieved|documents_ingested|documents_deleted|query_tokens)_total$'
      then '{}'
  end::double precision[];
$$;

create table rag.measures (
  user_id uuid not null,
  name text not null check (rag.bounds_of(name) is not null),
  -- success or failure of a request, prompt or completion of tokens.
  label text not null default '' check (label in ('', 'success', 'failure', 'prompt', 'completion')),
  -- Of a counter: what it counts. Of a histogram: the sum of all values.
  sum double precision not null check (sum >= 0 and sum < 1e15),
  -- How often; and how often up to each bound.
  total bigint not null check (total > 0),
  buckets bigint[] not null,
  primary key (user_id, name, label)
);

alter table rag.measures enable row level security;
alter table rag.measures force row level security;

create policy "callers measure their own requests, metrics read all" on rag.measures
  for all to authenticated
  using (user_id = (select auth.uid()) or (select rag.reads_metrics()))
  with check (user_id = (select auth.uid()));

grant select, insert, update on rag.measures to authenticated;

-- Add up to twenty measures of the caller's: [{name, label, value}]. A value is at most a million, so that nobody's
-- hide the others'.
create function public.rag_measure(measures jsonb)
returns void
language sql volatile security invoker set search_path = ''
as $$
  with measured as (
    select fields.name, coalesce(fields.label, '') as label,
      case when fields.value between 0 and 1000000 then fields.value end as value
    from (select item from jsonb_array_elements(rag_measure.measures) as item limit 20) as items
    cross join jsonb_to_record(items.item) as fields (name text, label text, value double precision)
  )
  insert into rag.measures as present (user_id, name, label, sum, total, buckets)
  select auth.uid(), measured.name, measured.label, 
    -- Of one that cannot be there is no sum.
    case when bool_and(measured.value is not null) then sum(measured.value) end, count(*), array(
      select (select count(*) from unnest(array_agg(measured.value)) as value where value <= bound)
      from unnest(rag.bounds_of(measured.name)) as bound)
  from measured
  group by measured.name, measured.label
  order by measured.name, measured.label
  on conflict on constraint measures_pkey do update set
    sum = present.sum + excluded.sum,
    total = present.total + excluded.total,
    buckets = array(
      select had + added
      from unnest(present.buckets, excluded.buckets) with ordinality as counted (had, added, place)
      order by place);
$$;

revoke all on function rag.bounds_of(text), public.rag_measure(jsonb) from public, anon, service_role;
grant execute on function rag.bounds_of(text), public.rag_measure(jsonb) to authenticated;

-- What /metrics shows, summed over all users. For the functions' own token alone, which has no user and
-- says what it is for; everybody else gets nothing.
--
-- value: of a counter what it counts, of a histogram the sum of all values; total: how many those were, and buckets
-- how many of them were at most as large as each of the bounds.
create function public.rag_metrics()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[]
)
language sql stable security invoker set search_path = ''
as $$
  select 'rag_requests_total', jsonb_build_object('function', function, 'outcome', outcome), sum(total), sum(total),
    '{}'::double precision[], '{}'::bigint[]
  from rag.request_counts
  where (select rag.reads_metrics())
  group by function, outcome
  union all
  select measures.name, jsonb_build_object('label', measures.label), sum(measures.sum), sum(measures.total),
    rag.bounds_of(measures.name), array(
      select sum(all_of.buckets[place])::bigint
      from generate_subscripts(rag.bounds_of(measures.name), 1) as place
      cross join rag.measures as all_of
      where all_of.name = measures.name and all_of.label = measures.label
      group by place
      order by place)
  from rag.measures
  where (select rag.reads_metrics())
  group by measures.name, measures.label;
$$;

revoke all on function public.rag_metrics() from public, anon, service_role;
grant execute on function public.rag_metrics() to authenticated;

-- Raises PT400 for a page that nobody gets.
create or replace function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 300 then
    raise exception 'top_k must be between 1 and 300' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

-- Raises PT400 for filters that are no object, PT403 for a key without a scope that reads, and for a collection by name
-- what rag.require_collection raises.
create or replace function rag.scope_of(filters jsonb)
returns rag.scope
language plpgsql stable security invoker set search_path = ''
as $$
declare
  wanted rag.filters;
  scope rag.scope;
  groups integer[];
  facets uuid[];
begin
  if not rag.has_scope('retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope retrievals:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object'
    or jsonb_typeof(coalesce(nullif(filters -> 'metadata', 'null'), '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));

  scope.org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);
  scope.model := coalesce(wanted.model, (select settings.embedding_model from rag.settings));
  scope.collection_ids := nullif(wanted.collection_ids, '{}');
  if wanted.collection_id is not null then
    scope.collection_ids := array[wanted.collection_id];
  end if;
  if wanted.collection is not null then
    scope.collection_ids := array[(rag.require_collection(wanted.collection)).id];
  end if;
  -- Row security would keep a bound key in its collection, but not find that by an index.
  if rag.bound_collection() is not null then
    scope.collection_ids := array(
      select rag.bound_collection()
      where scope.collection_ids is null or rag.bound_collection() = any (scope.collection_ids));
  end if;
  scope.source_types := nullif(wanted.source_types, '{}');
  if wanted.source_type is not null then
    scope.source_types := array[wanted.source_type];
  end if;
  scope.lang := lower(wanted.lang);
  scope.date_from := wanted.date_from;
  scope.date_to := wanted.date_to;

  if num_nonnulls(wanted.origins, wanted.authors, wanted.states, wanted.labels, wanted.metadata) = 0 then
    return scope;
  end if;

  -- One facet of each group must be there.
  -- A null in a list is no document's.
  select array_agg(found.number), array_agg(rag.facet(found.kind, coalesce(found.value, 'null')))
    into groups, facets
  from (
    select 1, 'origin', to_jsonb(value) from unnest(wanted.origins) as value
    union all select 2, 'author', to_jsonb(value) from unnest(wanted.authors) as value
    union all select 3, 'state', to_jsonb(value) from unnest(wanted.states) as value
    union all select 4, 'label', to_jsonb(value) from unnest(wanted.labels) as value
    union all select 4 + entry.number, 'metadata.' || entry.key, entry.value
      from jsonb_each(nullif(wanted.metadata, 'null')) with ordinality as entry (key, value, number)
  ) as found (number, kind, value);
  if facets is not null then
    scope.document_ids := array(
      select found.document_id
      from unnest(groups, facets) as asked (number, facet)
      cross join unnest(scope.org_ids) as org (id)
      -- One look-up each, which the planner cannot turn into a walk through the org.
      cross join lateral (
        select facets_of.document_id
        from rag.facets as facets_of
        where facets_of.org_id = org.id and facets_of.facet = asked.facet
        offset 0
      ) as found
      group by org.id, found.document_id
      having count(distinct asked.number) = (select count(distinct number) from unnest(groups) as number));
  end if;
  return scope;
end;
$$;

-- The documents, of those allowed (null: all), with most of what is asked, as far as a bounded number of postings
-- tells: of each term and org `read` with the most of it, the rarest terms first, and about eight times as many
-- in all.
--
-- A document that is not among them may hold the term too, about half as much as the last that is (its rest). So
-- much less is each of those worth than where all were read, or a document would gain by common words that
-- others only seem to lack; and so much more is every document of the org, or it would lose to those of a smaller
-- org, where all were read.
create or replace function rag.best_by_impact(asked rag.question, scope rag.scope, allowed uuid[], wanted integer,
  read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  orgs constant integer := cardinality(scope.org_ids);
  each constant integer := greatest(wanted, read / greatest(1, orgs));
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  with list as materialized (
    -- As arrays: windows over so many rows take longer than reading them.
    select org.id as org_id, sought.idf, taken.ids, taken.impacts, sought.idf * taken.rest as rest
    from (
      select term, idf, sum(least(documents, each * orgs)) over (order by documents, term)
        - least(documents, each * orgs) as read_before
      from (select distinct term, idf, documents from unnest(asked.sought)) as terms
    ) as sought
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select array_agg(most.document_id) as ids, array_agg(most.impact) as impacts,
        case when count(*) = each then min(most.impact) / 2 else 0 end as rest
      from (
        select document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
          and (scope.collection_ids is null or collection_id = any (scope.collection_ids))
        order by impact desc
        limit each
      ) as most
    ) as taken
    where sought.read_before < 8 * read
  ), scored as (
    select list.org_id, best.document_id, sum(list.idf * best.impact - list.rest) as score
    from list, unnest(list.ids, list.impacts) as best (document_id, impact)
    where allowed is null or best.document_id in (select unnest(allowed))
    group by 1, 2
  )
  select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
  from (
    select scored.org_id, scored.document_id
    from scored
    left join (select list.org_id, sum(list.rest) as rest from list group by 1) as whole
      on orgs > 1 and whole.org_id = scored.org_id
    order by scored.score + coalesce(whole.rest, 0) desc, scored.document_id
    limit wanted
  ) as ranked;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- How much of all that its orgs have the scope's collections hold, in chunks, by the log of term counts.
create function rag.share_of_collections(scope rag.scope)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
declare
  whole rag.scope := scope;
begin
  whole.collection_ids := null;
  return rag.count_chunks(scope)::double precision / nullif(rag.count_chunks(whole), 0);
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or about the best `wanted`.
create or replace function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  read constant integer := (select settings.postings_read from rag.settings);
  left_over rag.reference[];
begin
  if scope.collection_ids is not null and asked.totals is null and not rag.filters_documents(scope)
    and rag.share_of_collections(scope) >= 0.1
  then
    -- Postings know their collection. Of one that is a large part of its org, the first are soon read.
    return rag.best_by_impact(asked, scope, null, wanted, greatest(wanted, read));
  elsif scope.collection_ids is not null or rag.filters_documents(scope) then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s %s)',
      rag.conditions(scope, 'id'), case when asked.totals is not null then
      'and exists (select from rag.postings where postings.org_id = documents.org_id '
      'and postings.document_id = documents.id and postings.term = any ($2))' end)
      into left_over using scope, asked.totals;
  elsif asked.totals is not null then
    left_over := array(
      select (postings.org_id, postings.document_id)::rag.reference
      from rag.postings
      where postings.org_id = any (scope.org_ids) and postings.term = any (asked.totals));
  else
    return rag.best_by_impact(asked, scope, null, wanted, greatest(wanted, read));
  end if;

  -- Few are looked up one by one. Of many, the postings tell: more of them, since most may not be allowed.
  if cardinality(left_over) <= 4 * read then
    return rag.best_among(asked, left_over, wanted);
  end if;
  return rag.best_by_impact(asked, scope, array(select document_id from unnest(left_over)), wanted, 20 * read);
end;
$$;

revoke all on function rag.share_of_collections(rag.scope) from public, anon, service_role;
grant execute on function rag.share_of_collections(rag.scope) to authenticated;

-- The same with filters, as long as they leave no more than `bound`; considered: how many they leave, counted no
-- further than that. The commonest, one source type, keeps its plan; others are planned for the filters at
-- hand. Texts are fetched of those that are kept: with all of them the rows would not fit into memory.
create or replace function rag.nearest_of_filtered(needle extensions.halfvec, scope rag.scope, wanted integer,
  bound bigint, out hits rag.hit[], out considered integer)
language plpgsql stable security invoker set search_path = ''
-- As above: a kept plan knows neither org nor source type.
set enable_seqscan = off
as $$
declare
  one_type constant text := scope.source_types[1];
begin
  if rag.has_one_source_type(scope) then
    with visible as materialized (
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        select org_id, id, (embedding operator(extensions.<=>) needle) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model and source_type = one_type
        offset 0
      ) as found
      limit bound + 1
    )
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
        greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
        order by distance, id), (select count(*) from visible)
      into hits, considered
    from (select * from visible order by distance, id limit wanted) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text;
    return;
  end if;

  execute format($query$
    with visible as materialized (
      select org_id, id, (embedding operator(extensions.<=>) $2) + 0 as distance
      from rag.chunks
      where %s
      limit $4 + 1
    )
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
        greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
        order by distance, id), (select count(*) from visible)
    from (select * from visible order by distance, id limit $3) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text
  $query$, rag.chunk_conditions(scope))
    into hits, considered using scope, needle, wanted, bound;
end;
$$;

-- How many chunks of its model a scope leaves that asks for no more than collections, by the log of term counts.
create or replace function rag.count_chunks(scope rag.scope)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(sum(counts.chunks), 0)
    from unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.term, term_counts.collection_id, term_counts.chunks
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term >= ' ' and term_counts.term < '!'
      offset 0
    ) as counts
    where rag.model_of_total(counts.term) = scope.model
      and (scope.collection_ids is null or counts.collection_id = any (scope.collection_ids)));
end;
$$;

-- How many rows are few: `exact_rows`, twice as many where they are scattered over several orgs and so hard to find
-- by the index; and no more than 4,000 of those that are most of the table, of which the index loses none.
create function rag.exact_bound(scope rag.scope, candidates bigint, exact_rows integer)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
declare
  rows_in_table constant real := (
    select reltuples from pg_catalog.pg_class where oid = 'rag.chunks'::regclass);
begin
  return case when cardinality(scope.org_ids) > 1 then 2 else 1 end
    * case when rows_in_table > 0 and candidates > rows_in_table / 2 then least(exact_rows, 4000) else exact_rows end;
end;
$$;

-- The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves
-- were compared; considered: how many were.
create or replace function rag.nearest(needle extensions.halfvec, scope rag.scope, wanted integer,
  out hits rag.hit[], out exact boolean, out considered integer)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  filtered constant boolean := not rag.has_no_filters(scope);
  every_row constant bigint := 9223372036854775806;
  bound bigint;
  effort integer;
  more integer;
  complete boolean;
begin
  select * into settings from rag.settings;
  -- Of collections and whole orgs the log of term counts knows how many rows there are; should it be wrong, it costs
  -- time and no rows. With other filters, comparing as many as are few tells.
  if not rag.filters_documents(scope) and scope.without_chunk is null then
    considered := rag.count_chunks(scope);
  end if;
  bound := rag.exact_bound(scope, considered, settings.exact_rows);
  if filtered and coalesce(considered <= bound, true) then
    select * into hits, considered from rag.nearest_of_filtered(needle, scope, wanted, bound);
  end if;
  exact := considered <= bound;
  if exact then
    if not filtered then
      hits := rag.nearest_of_all(needle, scope, wanted);
    end if;
    return;
  end if;

  effort := rag.effort(scope, considered, settings.ef_search);
  -- One more than wanted shows whether the last is nearer than what is left out; many more, where passages
  -- repeat themselves, as footers do.
  foreach more in array array[1, 100] loop
    select * into hits, considered, complete
    from rag.nearest_of_index(needle, scope, wanted, wanted + more, effort);
    exit when complete or considered < wanted + more;
  end loop;
  if not complete then
    exact := true;
    select * into hits, considered from rag.nearest_of_filtered(needle, scope, wanted, every_row);
  end if;
end;
$$;

revoke all on function rag.exact_bound(rag.scope, bigint, integer) from public, anon, service_role;
grant execute on function rag.exact_bound(rag.scope, bigint, integer) to authenticated;

-- cascade: with all its documents; without it one that has some stays, PT409. PT403 where there are documents
-- that the caller may not delete: other people's private ones, which only an admin may.
create or replace function public.rag_delete_collection(collection_id uuid, "cascade" boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  gone rag.collections := rag.collection_of(collection_id);
begin
  -- Told to the trigger that sees them go (rag.keep_documents): the caller may not see them all.
  perform set_config('rag.cascade', coalesce("cascade", false)::text, true);
  delete from rag.collections where org_id = gone.org_id and id = gone.id;
  if not found then
    raise exception 'this key may not delete collections' using errcode = 'PT403', detail = 'missing_scope';
  end if;
  perform set_config('rag.cascade', '', true);
end;
$$;
