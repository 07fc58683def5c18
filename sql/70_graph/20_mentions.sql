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

call rag.admit_members('mentions');
call rag.restrict_keys('mentions', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('mentions');
call rag.require_edit('mentions');
