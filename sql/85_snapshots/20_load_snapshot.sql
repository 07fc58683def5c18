-- Import of a snapshot into a collection, a page at a time. The collection has no name (collections.loading_name) until
-- the end of the import, which names it in one transaction.

create function rag.check_load(name text, overwrite boolean)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.resolve_org(null);
  present rag.collections;
begin
  if rag.bound_collection() is not null
    or not (rag.has_scope('documents:write') and rag.has_scope('collections:manage')) then
    raise exception 'The API key may not create collections. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  elsif coalesce(length(check_load.name), 0) not between 1 and 255 then
    raise exception 'a name must have 1 to 255 characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  perform rag.check_name(check_load.name), rag.check_owner_in_name(org_id, check_load.name);
  select * into present from rag.collection_by_name(org_id, check_load.name);
  if found and not coalesce(check_load.overwrite, false) then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  elsif present.owner_id is not null or check_load.name ~ ':u:[^:]*$' then
    raise exception 'A snapshot belongs to the whole org and cannot become a private index. Choose another name.'
      using errcode = 'PT400', detail = 'private_collection';
  end if;
  return org_id;
end;
$$;

comment on function rag.check_load is
  'The caller''s org, if a snapshot may be loaded into a collection of that name. PT409 if the name is taken and '
  'overwrite is false; PT400 for the name of a private collection.';

create function public.rag_check_load(name text, overwrite boolean default false)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return (
    select jsonb_build_object('org_id', checked.org_id, 'left_behind', array(
      select collections.id
      from rag.collections
      where collections.org_id = checked.org_id and collections.loading_name is not null
        and collections.deleted_at is null
        and collections.updated_at < now() - interval '1 hour'))
    from (select rag.check_load(rag_check_load.name, rag_check_load.overwrite) as org_id offset 0) as checked);
end;
$$;

comment on function public.rag_check_load is
  '{"org_id", "left_behind"}: the org whose snapshots the caller may load under that name, and the unnamed collections '
  'of loads that stopped more than an hour ago.';

create function public.rag_begin_load(name text, overwrite boolean, documents integer, collection jsonb)
returns uuid
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home_id constant uuid := rag.check_load(rag_begin_load.name, rag_begin_load.overwrite);
  tier constant rag.tiers := rag.org_tier(home_id);
  fields record;
  made uuid;
begin
  perform rag.check_json('collection', rag_begin_load.collection, 100000);
  select * into fields
  from jsonb_to_record(rag_begin_load.collection) as given (description text, metadata jsonb, config jsonb);
  perform rag.check_config(coalesce(fields.config, '{}'), coalesce(fields.config, '{}'));
  if rag_begin_load.documents > tier.documents_per_collection then
    raise exception 'The tier of your org allows % documents in a collection. Delete some, or ask for a larger tier.',
      tier.documents_per_collection
      using errcode = 'PT429', detail = 'document_limit_reached';
  elsif not exists (select from rag.collection_by_name(home_id, rag_begin_load.name))
    or tier.collections < (
      select count(*) from rag.collections where collections.org_id = home_id and collections.deleted_at is null)
  then
    perform rag.check_collection_quota(home_id);
  end if;
  insert into rag.collections (org_id, name, loading_name, description, metadata, config)
  values (home_id, 'loading ' || gen_random_uuid(), rag_begin_load.name, fields.description,
    coalesce(fields.metadata, '{}'), coalesce(fields.config, '{}'))
  returning id into made;
  return made;
end;
$$;

comment on function public.rag_begin_load is
  'Create an unnamed collection for a load and return its id. PT429 if the tier of the org does not allow another '
  'collection or that many documents. The collection that the load will replace does not count, so the org may exceed '
  'its tier by one collection until the load ends.';

create function rag.running_load(collection_id uuid)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  home rag.collections;
begin
  update rag.collections
  set updated_at = clock_timestamp()
  where collections.org_id = any (array(select rag.current_org_ids())) and collections.id = running_load.collection_id
    and collections.loading_name is not null and collections.deleted_at is null and collections.owner_id is null
  returning collections.* into home;
  if not found then
    raise exception 'No load into this collection is running. Begin the load again.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.running_load is
  'The collection of a running load, locked until the end of the transaction, so that no other call ends the load. '
  'PT404 if no load into the collection is running.';

create function rag.id_of_number(number bigint)
returns uuid
language sql volatile security invoker set search_path = ''
as $$
  select (lpad(to_hex(id_of_number.number), 12, '0') || right(replace(gen_random_uuid()::text, '-', ''), 20))::uuid;
$$;

comment on function rag.id_of_number is
  'The id of a document from its number in the load, so that documents with the same created_at keep their order.';

create function public.rag_load_documents(collection_id uuid, documents jsonb, first bigint)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_load_documents.collection_id);
  new rag.new_document[];
  stored rag.stored_document[];
begin
  perform rag.check_json('documents', rag_load_documents.documents);
  new := rag.new_documents(home, rag_load_documents.documents);
  for number in 1..coalesce(cardinality(new), 0) loop
    new[number].id := rag.id_of_number("first" + number - 1);
    new[number].owner_id := null;
  end loop;
  select array_agg(kept order by kept.number) into stored from rag.put_documents(home, new) as kept;
  if exists (select from unnest(stored) as kept where kept.replaced) then
    raise exception 'Two documents of the snapshot have the same name. Persist the index again.'
      using errcode = 'PT400', detail = 'duplicate_document';
  end if;
  update rag.documents as loaded
  set filename = fields.filename, content_type = fields.content_type, size_bytes = fields.size_bytes,
    processing_info = coalesce(fields.processing_info, '{}'),
    created_at = least(greatest(fields.created_at, 'epoch'), now()),
    updated_at = least(greatest(fields.updated_at, 'epoch'), now())
  from unnest(stored) as kept
  join jsonb_array_elements(rag_load_documents.documents) with ordinality as item (body, number)
    on item.number = kept.number
  cross join jsonb_to_record(item.body) as fields (filename text, content_type text, size_bytes bigint,
    processing_info jsonb, created_at timestamptz, updated_at timestamptz)
  where loaded.org_id = home.org_id and loaded.id = kept.document_id;
  return query select kept.* from unnest(stored) as kept;
end;
$$;

comment on function public.rag_load_documents is
  'Store documents in the format of rag_read_snapshot_documents. first: the position of the first one in the load. '
  'PT400 if two documents have the same name.';

create function public.rag_load_chunks(
  collection_id uuid, document_id uuid, chunks jsonb, embedding_model text, last boolean
)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_load_chunks.collection_id);
  present integer;
begin
  perform rag.check_json('chunks', rag_load_chunks.chunks);
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.id = rag_load_chunks.document_id
  ) then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  select count(*) into present
  from rag.chunks as stored
  where stored.org_id = home.org_id and stored.document_id = rag_load_chunks.document_id;
  perform set_config('rag.words_later', 'true', true);
  perform rag.insert_chunks(home.org_id, array[rag.document_chunks(
    document_id => rag_load_chunks.document_id, chunks => rag_load_chunks.chunks,
    embedding_model => rag_load_chunks.embedding_model)], present);
  perform set_config('rag.words_later', '', true);
  if rag_load_chunks.last then
    perform set_config('rag.loads_words', 'true', true);
    perform rag.index_words(home.org_id, array[rag_load_chunks.document_id]);
    perform set_config('rag.loads_words', '', true);
  end if;
end;
$$;

comment on function public.rag_load_chunks is
  'Store further chunks of a document, in the format of rag_load_documents. The words of the document are counted with '
  'its last chunks: counting them again at each call would take hours for a long document.';

create function public.rag_finish_load(collection_id uuid, overwrite boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_finish_load.collection_id);
  older rag.collections;
begin
  perform pg_advisory_xact_lock(hashtextextended('rag.load ' || home.org_id || ' ' || home.loading_name, 0));
  perform rag.check_load(home.loading_name, rag_finish_load.overwrite);
  select * into older from rag.collection_by_name(home.org_id, home.loading_name);
  if found then
    perform rag.require_access(older.id, 'manage');
    perform rag.copy_access(older, home);
    delete from rag.collections where collections.org_id = home.org_id and collections.id = older.id;
  end if;
  update rag.collections
  set name = home.loading_name, loading_name = null
  where collections.org_id = home.org_id and collections.id = home.id;
exception when unique_violation then
  -- Another call has created a collection of the name.
  raise exception 'A collection of this name already exists. Choose another name.'
    using errcode = 'PT409', detail = 'duplicate_collection';
end;
$$;

comment on function public.rag_finish_load is
  'End the load and name the collection. With overwrite, the earlier collection of that name is deleted as by '
  'rag_delete_collection, and its grants are those of the new one. Of two loads under one name, the second waits, and without overwrite gets PT409.';

create function public.rag_cancel_load(collection_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.running_load(rag_cancel_load.collection_id);
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

comment on function public.rag_cancel_load is
  'Delete an incompletely loaded collection, a hundred documents per call. Returns whether more remain.';
