-- Indexes are persisted and loaded: sql/68, which is new. Chunks are added to a document by parts (sql/27 and 55), and
-- of what is being loaded nobody is told (sql/33).

create or replace function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- Whoever stores a document by parts counts its words at the end (rag_load_chunks).
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
  from changed
  group by changed.org_id;
  return null;
end;
$$;

create or replace function rag.tell_of_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  collection constant rag.collections := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'collection.deleted'
    -- One that was loaded is new when it has its name.
    when tg_op = 'INSERT' or old.loads is not null then 'collection.created'
    else 'collection.updated' end;
begin
  if collection.loads is not null then
    return null;
  end if;
  if rag.is_awaited(collection.org_id, collection.id, event) then
    perform rag.tell(collection.org_id, collection.id, collection.owner_id, event,
      jsonb_build_object('id', collection.id, 'name', collection.name));
  end if;
  return null;
end;
$$;

create or replace function rag.tell_of_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  document constant rag.documents := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'document.deleted'
    when document.status = 'processing' then 'document.processing_started'
    else 'document.processing_' || document.status end;
  object jsonb := jsonb_build_object(
    'id', document.id, 'collection_id', document.collection_id, 'status', document.status);
begin
  if not rag.is_awaited(document.org_id, document.collection_id, event) then
    return null;
  end if;
  -- Nobody knows of what is being loaded: of the collection is told when it is loaded. (That one has failed, the worker
  -- says, who sees no collections; and none is worked on that is loaded.)
  if event <> 'document.processing_failed' then
    if exists (
      select from rag.collections
      where collections.org_id = document.org_id and collections.id = document.collection_id
        and collections.loads is not null)
    then
      return null;
    end if;
  end if;
  if event = 'document.processing_completed' then
    object := object || jsonb_build_object('chunk_count', (
      select count(*) from rag.chunks
      where chunks.org_id = document.org_id and chunks.document_id = document.id));
  elsif event = 'document.processing_failed' then
    object := object || jsonb_build_object(
      'error_code', document.error_code, 'error_message', document.error_message);
  elsif event = 'document.deleted' and not exists (
    select from rag.collections
    where collections.org_id = document.org_id and collections.id = document.collection_id)
  then
    -- It went with its collection, of which is told.
    return null;
  end if;
  perform rag.tell(document.org_id, document.collection_id, document.owner_id, event, object);
  return null;
end;
$$;

-- Documents' chunks, in the place of those that they had. Whoever calls this holds the documents' rows: a second
-- writer waits for them, and then replaces these.
create or replace function rag.replace_chunks(org_id uuid, documents rag.chunked[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.chunks
  using unnest(replace_chunks.documents) as chunked
  where chunks.org_id = replace_chunks.org_id and chunks.document_id = chunked.document_id;
  perform rag.insert_chunks(replace_chunks.org_id, replace_chunks.documents, 0);
end;
$$;

-- Documents' chunks, numbered from `first` on. It repeats the document's row in them.
create function rag.insert_chunks(org_id uuid, documents rag.chunked[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if exists (
    select from unnest(insert_chunks.documents) as chunked
    join rag.documents as stored
      on stored.org_id = insert_chunks.org_id and stored.id = chunked.document_id
    -- Once a document: a long text takes a while to count.
    where length(stored.content) < (
      select max((item.body ->> 'span_end')::integer) from jsonb_array_elements(chunked.chunks) as item (body))
  ) then
    raise exception 'a chunk ends behind its document' using errcode = 'PT400', detail = 'span_outside';
  end if;

  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding, metadata)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, insert_chunks.first + item.position - 1,
    fields.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, chunked.embedding_model, fields.embedding,
    coalesce(fields.metadata, '{}')
  from unnest(insert_chunks.documents) as chunked
  join rag.documents as stored on stored.org_id = insert_chunks.org_id and stored.id = chunked.document_id
  cross join jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
  cross join jsonb_to_record(item.body) as fields (content text, span_start integer, span_end integer,
    token_count integer, embedding extensions.halfvec(1536), metadata jsonb);
end;
$$;

revoke all on function rag.insert_chunks(uuid, rag.chunked[], integer) from public, anon, service_role;
grant execute on function rag.insert_chunks(uuid, rag.chunked[], integer) to authenticated;

-- The collection whose snapshot is made; PT400 for somebody's own.
create function rag.collection_to_persist(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  home constant rag.collections := rag.collection_of(collection_to_persist.collection_id);
begin
  if not rag.has_scope('documents:read', 'documents:write') then
    raise exception 'this key may not read documents' using errcode = 'PT403', detail = 'missing_scope';
  elsif home.owner_id is not null then
    raise exception 'a private index is not persisted: anybody of the org could load it'
      using errcode = 'PT400', detail = 'private_collection';
  elsif home.loads is not null then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

create function public.rag_begin_persist(name text)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('org_id', home.org_id, 'collection_id', home.id, 'description', home.description,
    'metadata', home.metadata, 'config', home.config)
  from rag.collection_to_persist((rag.require_collection(rag_begin_persist.name)).id) as home;
$$;

-- [{id, created_at, chunk_count, bytes}]: up to 2,000 documents of the whole org after that one, the oldest first.
-- Those that have never become chunks are left out.
create function public.rag_list_to_persist(
  collection_id uuid, after_created_at timestamptz default null, after_id uuid default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.collection_to_persist(rag_list_to_persist.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', page.id, 'created_at', page.created_at,
      'chunk_count', counted.chunks, 'bytes', page.bytes) order by page.created_at, page.id), '[]')
    from (
      select documents.id, documents.created_at, octet_length(documents.content) as bytes
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
        and (after_id is null or (documents.created_at, documents.id) > (after_created_at, after_id))
        and (documents.status = 'completed' or exists (
          select from rag.chunks where chunks.org_id = home.org_id and chunks.document_id = documents.id))
      order by documents.created_at, documents.id
      limit 2000
    ) as page
    cross join lateral (
      select count(*) as chunks
      from rag.chunks
      where chunks.org_id = home.org_id and chunks.document_id = page.id
    ) as counted);
end;
$$;

-- A chunk as a snapshot has it. The embedding: its values in half precision, high byte first, as base64, without the
-- zeros at its end.
create function rag.persisted(chunk rag.chunks)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('content', chunk.content, 'span_start', chunk.span_start, 'span_end', chunk.span_end,
    'token_count', chunk.token_count, 'metadata', chunk.metadata, 'embedding', translate(encode(
      rtrim(substring(extensions.halfvec_send(chunk.embedding) from 5), '\x00'), 'base64'), E'\n', ''));
$$;

-- Those of the documents that are still there, each with its first 256 chunks and how many it has. Each is whole:
-- as it is at this moment.
create function public.rag_read_to_persist(collection_id uuid, document_ids uuid[])
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.collection_to_persist(rag_read_to_persist.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', documents.id,
      -- One that has no name of its own goes by its id, and keeps that name: unless somebody else has it.
      'name', case when documents.external_id is not null or not exists (
          select from rag.documents as other
          where other.org_id = home.org_id and other.collection_id = home.id and other.owner_id is null
            and other.external_id = documents.id::text)
        then rag.name_of(documents) end,
      'source_type', documents.source_type, 'title', documents.title, 'uri', documents.uri, 'lang', documents.lang,
      'occurred_at', documents.occurred_at, 'origin', documents.origin, 'author', documents.author,
      'state', documents.state, 'labels', documents.labels, 'metadata', documents.metadata,
      'content', documents.content, 'content_hash', documents.content_hash, 'filename', documents.filename,
      'content_type', documents.content_type, 'size_bytes', documents.size_bytes,
      'processing_info', documents.processing_info, 'created_at', documents.created_at,
      'updated_at', documents.updated_at, 'embedding_model', counted.model, 'chunk_count', counted.chunks,
      'chunks', coalesce(first.chunks, '[]')) order by documents.created_at, documents.id), '[]')
    from rag.documents
    cross join lateral (
      select count(*) as chunks, min(chunks.embedding_model) as model
      from rag.chunks
      where chunks.org_id = home.org_id and chunks.document_id = documents.id
    ) as counted
    cross join lateral (
      select jsonb_agg(rag.persisted(passage) order by passage.ordinal) as chunks
      from rag.chunks as passage
      where passage.org_id = home.org_id and passage.document_id = documents.id and passage.ordinal < 256
    ) as first
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = any (rag_read_to_persist.document_ids));
end;
$$;

-- Up to a thousand chunks of a document from that one on; PT409 when it is no longer as it was then.
create function public.rag_read_chunks_to_persist(
  collection_id uuid, document_id uuid, updated_at timestamptz, first integer
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.collection_to_persist(rag_read_chunks_to_persist.collection_id);
begin
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = rag_read_chunks_to_persist.document_id
      and documents.updated_at = rag_read_chunks_to_persist.updated_at
  ) then
    raise exception 'a document changed while it was persisted; please try again'
      using errcode = 'PT409', detail = 'document_changed';
  end if;
  return (
    select coalesce(jsonb_agg(rag.persisted(chunks) order by chunks.ordinal), '[]')
    from rag.chunks
    where chunks.org_id = home.org_id and chunks.document_id = rag_read_chunks_to_persist.document_id
      and chunks.ordinal >= "first" and chunks.ordinal < "first" + 1000);
end;
$$;

-- The caller's org, once it is certain that a snapshot may become its collection of that name. PT409 for a name that
-- is taken, without overwrite; PT400 for the name of somebody's own.
create function rag.check_load(name text, overwrite boolean)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.org_meant(null);
  present rag.collections;
begin
  if rag.bound_collection() is not null
    or not (rag.has_scope('documents:write') and rag.has_scope('collections:manage')) then
    raise exception 'this key may not make collections' using errcode = 'PT403', detail = 'missing_scope';
  elsif coalesce(length(check_load.name), 0) not between 1 and 255 then
    raise exception 'a name has 1 to 255 characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  perform rag.check_name(check_load.name);
  select * into present from rag.collection_named(org_id, check_load.name);
  if found and not coalesce(check_load.overwrite, false) then
    raise exception 'there is a collection of that name already'
      using errcode = 'PT409', detail = 'duplicate_collection';
  elsif present.owner_id is not null or check_load.name ~ ':u:[^:]*$' then
    raise exception 'a private index is not loaded: a snapshot is the whole org''s'
      using errcode = 'PT400', detail = 'private_collection';
  end if;
  return org_id;
end;
$$;

-- {"org_id", "left_behind"}: whose snapshots the caller may load under that name, and the collections that loads have
-- left without a name and an hour ago.
create function public.rag_check_load(name text, overwrite boolean default false)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('org_id', checked.org_id, 'left_behind', array(
    select collections.id
    from rag.collections
    where collections.org_id = checked.org_id and collections.loads is not null
      and collections.updated_at < now() - interval '1 hour'))
  from (select rag.check_load(rag_check_load.name, rag_check_load.overwrite) as org_id offset 0) as checked;
$$;

-- A collection without a name, to be filled; its id. PT429 where the org's tier has no room for it, or for so many
-- documents. What it is to take the place of makes room for it: that org has one more for a while.
create function public.rag_begin_load(name text, overwrite boolean, documents integer, collection jsonb)
returns uuid
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  home_id constant uuid := rag.check_load(rag_begin_load.name, rag_begin_load.overwrite);
  tier constant rag.tiers := rag.tier_of(home_id);
  made uuid;
begin
  if rag_begin_load.documents > tier.documents_per_collection then
    raise exception 'this org''s tier has room for % documents in a collection', tier.documents_per_collection
      using errcode = 'PT429', detail = 'document_limit_reached';
  elsif not exists (select from rag.collection_named(home_id, rag_begin_load.name))
    or tier.collections < (select count(*) from rag.collections where collections.org_id = home_id)
  then
    perform rag.require_room_for_a_collection(home_id);
  end if;
  insert into rag.collections (org_id, name, loads, description, metadata, config)
  select home_id, 'loading ' || gen_random_uuid(), rag_begin_load.name, fields.description,
    coalesce(fields.metadata, '{}'), coalesce(fields.config, '{}')
  from jsonb_to_record(rag_begin_load.collection) as fields (description text, metadata jsonb, config jsonb)
  returning id into made;
  return made;
end;
$$;

-- The collection that is being loaded, held for the rest of the transaction: it is not left behind, and nobody else
-- ends it. PT404 when it is none, or none any more.
create function rag.held_load(collection_id uuid)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  home rag.collections;
begin
  update rag.collections
  set updated_at = clock_timestamp()
  where collections.org_id = any (array(select rag.current_org_ids())) and collections.id = held_load.collection_id
    and collections.loads is not null and collections.owner_id is null
  returning collections.* into home;
  if not found then
    raise exception 'nothing is loaded there' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

-- The id of a document by its place among those of a load, so that they keep their order where they are of one moment.
create function rag.placed_id(place bigint)
returns uuid
language sql volatile security invoker set search_path = ''
as $$
  select (lpad(to_hex(placed_id.place), 12, '0') || right(replace(gen_random_uuid()::text, '-', ''), 20))::uuid;
$$;

-- Store documents as rag_read_to_persist gives them, the first of them at that place among all; PT400 for two of one
-- name.
create function public.rag_load_documents(collection_id uuid, documents jsonb, first bigint)
returns setof rag.stored
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.held_load(rag_load_documents.collection_id);
  new rag.new_document[] := rag.new_documents(home, rag_load_documents.documents);
  stored rag.stored[];
begin
  for place in 1..coalesce(cardinality(new), 0) loop
    new[place].id := rag.placed_id("first" + place - 1);
    new[place].owner_id := null;
  end loop;
  select array_agg(kept order by kept.place) into stored from rag.put_documents(home, new) as kept;
  if exists (select from unnest(stored) as kept where kept.replaced) then
    raise exception 'two documents have one name' using errcode = 'PT400', detail = 'duplicate_document';
  end if;
  update rag.documents as loaded
  set filename = fields.filename, content_type = fields.content_type, size_bytes = fields.size_bytes,
    processing_info = coalesce(fields.processing_info, '{}'),
    created_at = least(greatest(fields.created_at, 'epoch'), now()),
    updated_at = least(greatest(fields.updated_at, 'epoch'), now())
  from unnest(stored) as kept
  join jsonb_array_elements(rag_load_documents.documents) with ordinality as item (body, place)
    on item.place = kept.place
  cross join jsonb_to_record(item.body) as fields (filename text, content_type text, size_bytes bigint,
    processing_info jsonb, created_at timestamptz, updated_at timestamptz)
  where loaded.org_id = home.org_id and loaded.id = kept.document_id;
  return query select kept.* from unnest(stored) as kept;
end;
$$;

-- More chunks of a document that has some, as rag_load_documents takes them. Its words are counted with the last of
-- them: each time anew, a long document would take hours.
create function public.rag_load_chunks(
  collection_id uuid, document_id uuid, chunks jsonb, embedding_model text, last boolean
)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.held_load(rag_load_chunks.collection_id);
  present integer;
begin
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.id = rag_load_chunks.document_id
  ) then
    raise exception 'there is no such document' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  select count(*) into present
  from rag.chunks as stored
  where stored.org_id = home.org_id and stored.document_id = rag_load_chunks.document_id;
  perform set_config('rag.words_later', 'true', true);
  perform rag.insert_chunks(home.org_id, array[
    (rag_load_chunks.document_id, rag_load_chunks.chunks, rag_load_chunks.embedding_model)::rag.chunked], present);
  perform set_config('rag.words_later', '', true);
  if rag_load_chunks.last then
    perform rag.index_words(home.org_id, array[rag_load_chunks.document_id]);
  end if;
end;
$$;

-- Take the name. With overwrite the collection that has it goes, with its documents; PT403 where some of those are
-- other people's own. Of two who load under one name the second waits here, and then finds it taken.
create function public.rag_finish_load(collection_id uuid, overwrite boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.held_load(rag_finish_load.collection_id);
begin
  perform pg_advisory_xact_lock(hashtextextended('rag.load ' || home.org_id || ' ' || home.loads, 0));
  perform rag.check_load(home.loads, rag_finish_load.overwrite);
  delete from rag.collections as older
  where older.org_id = home.org_id
    and older.id = (select present.id from rag.collection_named(home.org_id, home.loads) as present);
  update rag.collections
  set name = home.loads, loads = null
  where collections.org_id = home.org_id and collections.id = home.id;
exception when unique_violation then
  -- Somebody made it by another way, just now.
  raise exception 'there is a collection of that name already'
    using errcode = 'PT409', detail = 'duplicate_collection';
end;
$$;

-- Delete a collection that was not loaded to its end, a hundred documents at a time; whether there are more.
create function public.rag_abandon_load(collection_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  home constant rag.collections := rag.held_load(rag_abandon_load.collection_id);
begin
  delete from rag.documents
  where documents.org_id = home.org_id and documents.id = any (array(
    select loaded.id
    from rag.documents as loaded
    where loaded.org_id = home.org_id and loaded.collection_id = home.id
    limit 100));
  if found then
    return true;
  end if;
  delete from rag.collections where collections.org_id = home.org_id and collections.id = home.id;
  return false;
end;
$$;

revoke all on function rag.collection_to_persist(uuid), rag.persisted(rag.chunks), rag.check_load(text, boolean),
  rag.held_load(uuid), rag.placed_id(bigint), public.rag_begin_persist(text),
  public.rag_list_to_persist(uuid, timestamptz, uuid), public.rag_read_to_persist(uuid, uuid[]),
  public.rag_read_chunks_to_persist(uuid, uuid, timestamptz, integer), public.rag_check_load(text, boolean),
  public.rag_begin_load(text, boolean, integer, jsonb), public.rag_load_documents(uuid, jsonb, bigint),
  public.rag_load_chunks(uuid, uuid, jsonb, text, boolean), public.rag_finish_load(uuid, boolean),
  public.rag_abandon_load(uuid)
  from public, anon, service_role;
grant execute on function rag.collection_to_persist(uuid), rag.persisted(rag.chunks), rag.check_load(text, boolean),
  rag.held_load(uuid), rag.placed_id(bigint), public.rag_begin_persist(text),
  public.rag_list_to_persist(uuid, timestamptz, uuid), public.rag_read_to_persist(uuid, uuid[]),
  public.rag_read_chunks_to_persist(uuid, uuid, timestamptz, integer), public.rag_check_load(text, boolean),
  public.rag_begin_load(text, boolean, integer, jsonb), public.rag_load_documents(uuid, jsonb, bigint),
  public.rag_load_chunks(uuid, uuid, jsonb, text, boolean), public.rag_finish_load(uuid, boolean),
  public.rag_abandon_load(uuid)
  to authenticated;
