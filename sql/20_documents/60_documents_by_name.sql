-- Collections and documents by the caller's names, for APIs without ids: an index or a namespace is a collection, and a
-- document has its external_id as its name, or its id if it has none. With several orgs the caller's token must name
-- one, as that of an API key does.

create function rag.external_name(document rag.documents)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(document.external_id, document.id::text);
$$;

comment on function rag.external_name is 'The caller''s name of a document.';

create function rag.require_collection(name text, in_org uuid default null)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  org_id constant uuid := rag.resolve_org(in_org);
  home rag.collections;
begin
  perform rag.check_owner_in_name(org_id, require_collection.name);
  select * into home from rag.collection_by_name(org_id, require_collection.name, or_deleted => true);
  if not found then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.require_collection is
  'The collection of that name; PT404 if there is none, PT403 for another user''s private collection.';

create function rag.documents_by_name(home rag.collections, names text[])
returns setof rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- All names in one scan: without statistics of a new table, the planner reads all documents of the org in a scan.
  return query
  select distinct on (found.name) (found.document).*
  from (
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = rag.current_user_id() and documents.external_id = any (names)
    union all
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id = home.owner_id and documents.external_id = any (names)
    union all
    select documents.external_id, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id
      and documents.owner_id is null and documents.external_id = any (names)
    union all
    select documents.id::text, documents
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.external_id is null
      and documents.id = any (array(
        select name::uuid from unnest(names) as name
        where name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
  ) as found (name, document)
  order by found.name, (found.document).owner_id nulls last, (found.document).external_id nulls last;
end;
$$;

comment on function rag.documents_by_name is
  'The documents of those names in a collection: the caller''s own before a shared one, and an external_id before '
  'an id.';

create function public.rag_find_collection(collection text)
returns table (id uuid, org_id uuid, owner_id uuid, name text, description text, metadata jsonb, config jsonb)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- The scopes of those who write, delete or search by name. Lists of documents look the collection up themselves.
  perform rag.begin_call(),
    rag.require_scope('documents:write', 'collections:manage', 'retrievals:read', 'chat:read');
  return query
    select home.id, home.org_id, home.owner_id, home.name, home.description, home.metadata, home.config
    from rag.require_collection(rag_find_collection.collection) as home;
end;
$$;

comment on function public.rag_find_collection is
  'The collection of that name, without counting its documents, which takes longer.';

create function public.rag_list_names()
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(),
    rag.require_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read');
  return (
    select coalesce(jsonb_agg(distinct collections.name), '[]')
    from rag.collections
    where collections.org_id = rag.resolve_org(null) and collections.loading_name is null
      and collections.id = (
        select named.id from rag.collection_by_name(collections.org_id, collections.name, or_deleted => true) as named));
end;
$$;

comment on function public.rag_list_names is 'The names of all collections that the caller can name, in their order.';

create function public.rag_find_documents(collection text, names text[])
returns table (name text, document_id uuid, content_hash text, metadata jsonb)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select rag.external_name(found), found.id, found.content_hash, found.metadata
    from rag.documents_by_name(rag.require_collection(rag_find_documents.collection), rag_find_documents.names) as found;
end;
$$;

comment on function public.rag_find_documents is
  'The documents of those names in a collection, with the fields that show whether they have changed.';

create function public.rag_put_documents(
  collection text, documents jsonb, only_present boolean default false, org_id uuid default null
)
returns setof rag.stored_document
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  home rag.collections;
  new rag.new_document[];
begin
  perform rag.begin_write();
  perform rag.check_json('documents', rag_put_documents.documents);
  if rag_put_documents.only_present then
    home := rag.require_collection(rag_put_documents.collection, rag_put_documents.org_id);
  else
    perform rag.check_name(rag_put_documents.collection);
    home := rag.ensure_collection(rag.resolve_org(rag_put_documents.org_id), rag_put_documents.collection);
  end if;
  new := rag.new_documents(home, rag_put_documents.documents);
  if rag_put_documents.only_present then
    for number in 1..coalesce(cardinality(new), 0) loop
      -- By id alone: the document of that name may belong to another user.
      new[number].id := (
        select found.id from rag.documents_by_name(home, array[new[number].external_id]) as found);
      new[number].external_id := null;
    end loop;
  end if;
  return query select stored.* from rag.put_documents(home, new, rag_put_documents.only_present) as stored;
end;
$$;

comment on function public.rag_put_documents is
  'Store documents with their chunks in the collection, which is created if it is new. A document replaces the '
  'document of its name. documents: title, content, embedding_model and chunks; optionally external_id (no two have the '
  'same), private (true: only the caller and the org''s admins see it), source_type, uri, lang, occurred_at, origin, '
  'author, state, labels, metadata. A private and a shared document of one external_id are two documents. only_present: '
  'documents that do not exist are skipped. org_id: by default the caller''s only org. number counts from 1.';

create function public.rag_list_named(
  collection text, "limit" integer, "offset" integer default 0, characters integer default null,
  metadata jsonb default '{}'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.require_collection(rag_list_named.collection);
  facets uuid[];
  most_characters constant integer := greatest(least(coalesce(characters, 100000), 100000), 0);
begin
  perform rag.check_json('metadata', rag_list_named.metadata, 65536);
  facets := array(
    select rag.facet_hash('metadata.' || entry.key, entry.value) from jsonb_each(rag_list_named.metadata) as entry);
  return (
    with listed as (
      select documents.id, documents.created_at
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id
        -- An admin sees more, but not by these names.
        and (documents.owner_id is null or documents.owner_id = any (array[rag.current_user_id(), home.owner_id]))
        and not exists (
          select from unnest(facets) as asked (facet)
          where not exists (
            select from rag.facets as own
            where own.org_id = home.org_id and own.document_id = documents.id and own.facet = asked.facet))
    ), page as (
      select sized.*, sum(sized.bytes) over (order by sized.created_at, sized.id) - sized.bytes as bytes_before
      from (
        select listed.*, least(octet_length(documents.content), 4 * most_characters)
          -- The result of || is not compressed.
          + pg_column_size(documents.metadata || '{}') as bytes
        from listed
        join rag.documents on documents.org_id = home.org_id and documents.id = listed.id
        order by listed.created_at, listed.id
        limit least("limit", 1000) offset "offset"
      ) as sized
    )
    select jsonb_build_object('total', (select count(*) from listed), 'documents', coalesce(jsonb_agg(
      jsonb_build_object(
        'name', rag.external_name(documents), 'document_id', documents.id,
        'content', left(documents.content, most_characters),
        'is_truncated', length(documents.content) > most_characters,
        'content_hash', documents.content_hash, 'metadata', documents.metadata, 'title', documents.title,
        'source_type', documents.source_type, 'uri', documents.uri, 'status', documents.status,
        'created_at', documents.created_at, 'updated_at', documents.updated_at)
      order by page.created_at, page.id), '[]'))
    from page
    join rag.documents on documents.org_id = home.org_id and documents.id = page.id
    where page.bytes_before < 8 << 20);
end;
$$;

comment on function public.rag_list_named is
  '{"total", "documents": [{name, document_id, content, is_truncated, content_hash, metadata, title, source_type, '
  'uri, status, created_at, updated_at}]}: a page, the oldest first, of the documents whose metadata have all these '
  'values, with so many characters of their texts (at most 100,000), and how many there are. A page ends early '
  'after eight megabytes: the caller asks again for the rest.';

create function public.rag_delete_named(collection text, names text[])
returns setof text
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.require_collection(rag_delete_named.collection);
  present constant uuid[] := array(select found.id from rag.documents_by_name(home, names) as found);
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
  returning rag.external_name(gone);
end;
$$;

comment on function public.rag_delete_named is 'Delete the documents of those names in a collection; their names.';
