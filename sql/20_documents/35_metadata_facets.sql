-- Facets: the filterable values of a document besides its own columns (origin, author, state, labels, type, each entry
-- of its metadata). The operators of jsonb and numeric are not leakproof, and under row security would scan the whole
-- org; so each value is a row that a search finds by equality, and a value of the metadata by order too. A trigger
-- writes facets, rag.resolve_filters reads them.

create table rag.facets (
  org_id uuid not null,
  facet uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  metadata_key uuid,
  sort_key text collate "C",
  primary key (org_id, document_id, facet),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.facets is
  'Filterable values of documents: hashes that a search finds by equality, and sort keys that it finds by range.';
comment on column rag.facets.facet is
  'A hash of kind and value (rag.facet_hash): as long for a long value as for a short one.';
comment on column rag.facets.metadata_key is
  'A hash of the key of the metadata (rag.facet_hash); null for other fields.';
comment on column rag.facets.sort_key is 'The value of the metadata by order (rag.sort_key); null for other fields.';

-- rag.resolve_filters: the documents with a facet.
create index facets_by_value on rag.facets (org_id, facet) include (document_id, collection_id, owner_id);

-- rag.resolve_filters: the documents with a key in their metadata, and a value within a range.
create index facets_by_order on rag.facets (org_id, metadata_key, sort_key)
  include (document_id, collection_id, owner_id) where metadata_key is not null;

call rag.admit_members('facets');
call rag.restrict_keys('facets', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('facets');
call rag.require_edit('facets');

create function rag.normalize_numbers(value jsonb)
returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return case jsonb_typeof(value)
    when 'number' then to_jsonb(trim_scale(value::numeric))
    when 'array' then coalesce((
      select jsonb_agg(rag.normalize_numbers(item) order by position)
      from jsonb_array_elements(value) with ordinality as items (item, position)), '[]')
    when 'object' then coalesce((
      select jsonb_object_agg(entry.key, rag.normalize_numbers(entry.value)) from jsonb_each(value) as entry), '{}')
    else value
  end;
end;
$$;

comment on function rag.normalize_numbers is
  'The value with its numbers as short as they can be, since equal ones are one: 1.0 is 1, and [1.0] is [1].';

create function rag.facet_hash(kind text, value jsonb)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select encode(substr(sha256(convert_to(kind || ':' || case
    when jsonb_path_exists(value, '$.**{32}') then value else rag.normalize_numbers(value)
  end::text, 'UTF8')), 1, 16), 'hex')::uuid;
$$;

comment on function rag.facet_hash is
  'The first 128 bits of SHA-256 over kind and value. No document''s value is deeper than 32 levels.';

create function rag.sort_key(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value)
    when 'string' then 's' || left(value #>> '{}', 201)
    when 'number' then (
      select 'n' || case sign(number)
        when 1 then '2' || 500 + exponent || digits
        when 0 then '1'
        -- Of negative numbers, the larger comes first, and the more digits.
        else '0' || 500 - exponent || translate(digits, '0123456789', '9876543210') || '~'
      end
      from (
        select number, length(significant) - scale(number), rtrim(significant, '0')
        from (select value::numeric, ltrim(replace(abs(value::numeric)::text, '.', ''), '0'))
          as plain (number, significant)
      ) as scientific (number, exponent, digits))
    else ''
  end;
$$;

comment on function rag.sort_key is
  'A text whose order, collate "C", is that of numbers among numbers (exactly: sign, exponent, digits) and of strings '
  'among strings (their first 201 characters); empty for another value. Numbers have at most 300 digits on either side '
  'of the point (rag.is_metadata).';

create function rag.document_facets(document rag.documents)
returns table (facet uuid, metadata_key uuid, sort_key text)
language sql immutable security invoker set search_path = ''
as $$
  select distinct rag.facet_hash(found.kind, found.value), null::uuid, null
  from (
    select field.kind, to_jsonb(field.value)
    from (values ('origin', document.origin), ('author', document.author), ('state', document.state))
      as field (kind, value)
    where field.value is not null
    union all
    select 'label', to_jsonb(label) from unnest(document.labels) as label
    union all
    select 'document_type', said.value
    from (values (document.metadata -> 'document_type'), (document.processing_info -> 'document_type'))
      as said (value)
    where jsonb_typeof(said.value) = 'string'
  ) as found (kind, value)
  union all
  select rag.facet_hash('metadata.' || entry.key, entry.value), rag.facet_hash('metadata key', to_jsonb(entry.key)),
    rag.sort_key(entry.value)
  from jsonb_each(document.metadata) as entry;
$$;

comment on function rag.document_facets is
  'The facets of a document. Metadata have the kind "metadata.key", so that none can be confused with a label or an '
  'author. A document has two types, the declared one and the detected one: filters accept either.';

create function rag.index_new_facets()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.facets (org_id, facet, document_id, collection_id, owner_id, metadata_key, sort_key)
  select added.org_id, found.facet, added.id, added.collection_id, added.owner_id, found.metadata_key, found.sort_key
  from added
  cross join lateral rag.document_facets(added) as found;
  return null;
end;
$$;

comment on function rag.index_new_facets is 'Trigger that writes the facets of inserted documents, once a statement.';

create trigger index_facets_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.index_new_facets();

create function rag.index_changed_facets()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.facets where facets.org_id = new.org_id and facets.document_id = new.id;
  insert into rag.facets (org_id, facet, document_id, collection_id, owner_id, metadata_key, sort_key)
  select new.org_id, facet, new.id, new.collection_id, new.owner_id, metadata_key, sort_key
  from rag.document_facets(new);
  return null;
end;
$$;

comment on function rag.index_changed_facets is 'Trigger that replaces the facets of a document.';

create trigger index_facets_of_changed_documents
  after update of origin, author, state, labels, metadata, processing_info, collection_id, owner_id on rag.documents
  for each row
  when ((old.origin, old.author, old.state, old.labels, old.metadata, old.processing_info -> 'document_type',
      old.collection_id, old.owner_id)
    is distinct from
    (new.origin, new.author, new.state, new.labels, new.metadata, new.processing_info -> 'document_type',
      new.collection_id, new.owner_id))
  execute function rag.index_changed_facets();
