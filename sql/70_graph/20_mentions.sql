-- Mentions: the entities that a chunk names, which are the evidence that an entity exists. The rows are written with
-- the chunks (53_write_chunks.sql), or later by the worker (30_extractions.sql).

create table rag.mentions (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  kind text not null check (kind ~ '^[a-z][a-z_]{0,39}$'),
  surfaces text[] not null check (cardinality(surfaces) <= 20 and rag.is_visible_text(array_to_string(surfaces, ' '))),
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, ordinal, entity),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade
);

comment on table rag.mentions is 'Entities that chunks name.';
comment on column rag.mentions.kind is
  'person, organization, team, place, service, work, identifier, email, date, or name if the kind is unknown.';
comment on column rag.mentions.surfaces is
  'Other spellings of the name in the chunk, e.g., a surname alone or an abbreviation.';
comment on column rag.mentions.weight is 'The prominence of the entity in the chunk, 0 to 1.';

-- rag.link_entities and rag.expand_graph: the chunks that name an entity, highest weight first.
create index mentions_by_entity on rag.mentions (org_id, entity, weight desc)
  include (document_id, ordinal, collection_id, owner_id);

-- The same within a collection, which may be a small part of an org that names the entity everywhere.
create index mentions_by_collection on rag.mentions (org_id, collection_id, entity, weight desc)
  include (document_id, ordinal, owner_id);

-- rag.link_entities: names with the same phonetic key, or a key with the same beginning or end (the key reversed).
create index mentions_by_sound on rag.mentions (org_id, sound) include (entity, collection_id, owner_id);
create index mentions_by_ending on rag.mentions (org_id, ending) include (entity, collection_id, owner_id);

alter table rag.mentions enable row level security;
alter table rag.mentions force row level security;

create policy "members use their org's mentions" on rag.mentions
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.mentions
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.mentions
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.mentions
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));
