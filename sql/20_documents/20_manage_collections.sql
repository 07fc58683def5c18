-- Functions to create, list and change collections, within the tier's quota. They run as their caller: row security
-- decides which collections a caller sees, and which documents are counted.

create type rag.collection as (
  id uuid, org_id uuid, owner_id uuid, created_by uuid, name text, description text, metadata jsonb, config jsonb,
  document_count bigint, created_at timestamptz, updated_at timestamptz
);

comment on type rag.collection is 'A collection as a list returns it.';

create function rag.render(collection rag.collections)
returns rag.collection
language sql stable security invoker set search_path = ''
as $$
  select collection.id, collection.org_id, collection.owner_id, collection.created_by, collection.name,
    collection.description, collection.metadata, collection.config,
    (select count(*) from rag.documents
      where documents.org_id = collection.org_id and documents.collection_id = collection.id),
    collection.created_at, collection.updated_at;
$$;

comment on function rag.render(rag.collections) is 'A collection as a list returns it.';

create function rag.get_collection(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_collection rag.collections;
begin
  select * into found_collection
  from rag.collections
  where org_id = any (array(select rag.current_org_ids())) and id = get_collection.collection_id;
  if not found then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return found_collection;
end;
$$;

comment on function rag.get_collection is 'The collection of that id; PT404 for one that the caller does not see.';

create function public.rag_create_collection(
  name text, description text default null, metadata jsonb default '{}', config jsonb default '{}',
  org_id uuid default null, private boolean default false
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made rag.collections;
  owner_id uuid;
begin
  perform rag.begin_call();
  perform rag.check_json('metadata', metadata, 65536);
  config := jsonb_strip_nulls(coalesce(config, '{}'));
  perform rag.check_config(config, config);
  org_id := rag.resolve_org(org_id);
  perform rag.check_name(name);
  owner_id := coalesce(rag.new_collection_owner(org_id, name), case when private then rag.current_user_id() end);
  perform rag.check_collection_quota(org_id);
  insert into rag.collections (org_id, owner_id, name, description, metadata, config)
  values (org_id, owner_id, name, description, coalesce(metadata, '{}'), config)
  on conflict do nothing
  returning * into made;
  if made.id is null then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end if;
  return next rag.render(made);
end;
$$;

comment on function public.rag_create_collection is
  'Create a collection, in the caller''s only org unless one is given. private: only its creator and the org''s '
  'admins see it. PT409 for a name that is taken, PT429 above the tier''s number of collections.';

create function rag.check_config(config jsonb, changes jsonb)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.is_config(config) then
    raise exception 'config: chunk_size must be 32 to 8000, chunk_overlap 0 to 4000 and below chunk_size, '
      'embedding_model a string, enable_hybrid_search and enable_knowledge_graph booleans; at most 2000 bytes in all'
      using errcode = 'PT400', detail = 'invalid_config';
  end if;
  perform rag.check_models(array[changes ->> 'embedding_model']);
end;
$$;

comment on function rag.check_config is
  'Raises PT400 for an invalid config (rag.is_config). changes: the part of the config that this call sets; its '
  'embedding model must be one of the deployment''s.';

create function rag.check_name(name text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if not rag.is_visible_text(name) then
    raise exception 'a name must not have invisible characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
end;
$$;

comment on function rag.check_name is
  'Raises PT400 for a name with invisible characters. (The table does not check it: a collection that was created '
  'with a document may have one.)';

create function rag.check_collection_quota(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.org_tier(org_id)).collections;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.collections ' || org_id::text, 0));
  if allowed <= (
    select count(*)
    from rag.collections
    where collections.org_id = check_collection_quota.org_id and collections.deleted_at is null
  ) then
    raise exception 'The tier of your org allows % collections. Delete a collection, or ask for a larger tier.', allowed
      using errcode = 'PT429', detail = 'collection_limit_reached';
  end if;
end;
$$;

comment on function rag.check_collection_quota is
  'Raises PT429 if the org''s tier permits no further collection. It locks, so that two concurrent calls do not '
  'both count the last place as free.';

create function public.rag_list_collections(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  "order" text default 'desc'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'collections:manage');
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'name', 'document_count']);
  return (
    with placed as (
      select shown.*, count(*) over () as total, row_number() over (
        order by case sort_by when 'name' then shown.name end, case sort_by
          when 'created_at' then shown.created_at end, case sort_by
          when 'document_count' then shown.document_count end, shown.id) as position
      from rag.collections
      cross join lateral rag.render(collections) as shown
      where collections.org_id = any (array(select rag.current_org_ids())) and collections.loading_name is null
    ), page as (
      select placed.*, case "order" when 'desc' then -position else position end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'collections', coalesce(jsonb_agg(to_jsonb(page) - array['total', 'position', 'turn'] order by page.turn), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_collections is
  '{"total", "collections": [...]}: a page of those that the caller sees, and how many there are.';

create function rag.check_page("limit" integer, "offset" integer, "order" text, sort_by text, sortable text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if "limit" is null or "limit" not between 1 and 100 then
    raise exception 'limit must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_limit';
  elsif "offset" is null or "offset" < 0 then
    raise exception 'offset must be at least 0' using errcode = 'PT400', detail = 'invalid_offset';
  elsif "order" is null or "order" not in ('asc', 'desc') then
    raise exception 'order must be asc or desc' using errcode = 'PT400', detail = 'invalid_order';
  elsif sort_by is null or not sort_by = any (sortable) then
    raise exception 'sort_by must be one of %', array_to_string(sortable, ', ')
      using errcode = 'PT400', detail = 'invalid_sort_by';
  end if;
end;
$$;

comment on function rag.check_page is 'Raises PT400 for an invalid page.';

create function public.rag_get_collection(collection_id uuid)
returns setof rag.collection
language plpgsql stable security invoker set search_path = ''
as $$
begin
  -- Retrieval looks its collection up with the scope retrievals:read.
  perform rag.begin_call(), rag.require_scope('documents:read', 'collections:manage', 'retrievals:read');
  return query
    select shown.* from rag.render(rag.get_collection(rag_get_collection.collection_id)) as shown;
end;
$$;

comment on function public.rag_get_collection is 'A collection; PT404 for one that the caller does not see.';

create function public.rag_update_collection(
  collection_id uuid, name text default null, description text default null, metadata jsonb default null,
  config jsonb default null
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  present rag.collections := rag.get_collection(collection_id);
  was_graphed constant boolean := rag.is_in_graph(present.org_id, present.id);
  changed rag.collections;
begin
  perform rag.require_access(present.id, 'manage');
  perform rag.check_json('metadata', metadata, 65536), rag.check_json('config', config, 2000);
  perform rag.check_config(jsonb_strip_nulls(present.config || coalesce(config, '{}')), config), rag.check_name(name);
  if rag.new_collection_owner(present.org_id, name) <> coalesce(present.owner_id, '00000000-0000-0000-0000-000000000000') then
    raise exception 'a name that ends in :u: and the id of a user must belong to a private collection of that user'
      using errcode = 'PT400', detail = 'invalid_name';
  end if;
  if config ? 'embedding_model'
    and config -> 'embedding_model' is distinct from present.config -> 'embedding_model'
    and (rag.render(present)).document_count > 0
  then
    raise exception 'The collection has documents of another embedding model. Create another collection for this model.'
      using errcode = 'PT409', detail = 'collection_not_empty';
  end if;
  begin
    update rag.collections as renewed
    set name = coalesce(rag_update_collection.name, renewed.name),
      description = coalesce(rag_update_collection.description, renewed.description),
      metadata = coalesce(rag_update_collection.metadata, renewed.metadata),
      config = jsonb_strip_nulls(renewed.config || coalesce(rag_update_collection.config, '{}')),
      updated_at = clock_timestamp()
    where renewed.org_id = present.org_id and renewed.id = present.id
    returning renewed.* into changed;
  exception when unique_violation then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end;
  if changed.id is null then
    raise exception 'The API key may not change this collection. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  if config ? 'enable_knowledge_graph' then
    perform rag.on_graph_setting_changed(changed, was_graphed);
  end if;
  return next rag.render(changed);
end;
$$;

comment on function public.rag_update_collection is
  'Change a collection. Null leaves a field as it is. metadata replaces the previous one; config is merged by '
  'key, and a null removes a key. enable_knowledge_graph adds the documents to the graph, or removes them from '
  'it (70_graph). PT409 for a name that is taken, and for another embedding model once there are documents.';
