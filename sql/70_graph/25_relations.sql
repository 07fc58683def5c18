-- Relations that chunks state between entities: one row for each edge and chunk, so that an edge exists as long as its
-- evidence. Co-occurrence is not stored: rag.mentions has it.

create table rag.relations (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  subject text collate "C" not null check (length(subject) between 1 and 200),
  type text collate "C" not null check (type ~ '^[A-Z][A-Z_]{1,49}$'),
  object text collate "C" not null check (length(object) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  confidence real not null check (confidence > 0 and confidence <= 1),
  primary key (org_id, document_id, ordinal, subject, type, object),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade,
  check (subject <> object)
);

comment on table rag.relations is 'Relations between entities that chunks state.';
comment on column rag.relations.type is 'Read forwards: subject OWNED_BY object.';

-- rag.edges_among, in both directions; highest confidence first.
create index relations_by_subject on rag.relations (org_id, subject, confidence desc)
  include (type, object, document_id, ordinal, collection_id, owner_id);
create index relations_by_object on rag.relations (org_id, object, confidence desc)
  include (type, subject, document_id, ordinal, collection_id, owner_id);

-- rag.link_entities: other names of an entity, which may have any number of other edges.
create index relations_aliases_by_subject on rag.relations (org_id, subject, confidence desc)
  include (object, collection_id, owner_id) where type = 'ALIAS_OF';
create index relations_aliases_by_object on rag.relations (org_id, object, confidence desc)
  include (subject, collection_id, owner_id) where type = 'ALIAS_OF';

call rag.admit_members('relations');
call rag.restrict_keys('relations', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('relations');
call rag.require_edit('relations');

create function rag.move_graph_of_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.mentions set collection_id = new.collection_id, owner_id = new.owner_id
  where mentions.org_id = new.org_id and mentions.document_id = new.id;
  update rag.relations set collection_id = new.collection_id, owner_id = new.owner_id
  where relations.org_id = new.org_id and relations.document_id = new.id;
  update rag.jobs set collection_id = new.collection_id, owner_id = new.owner_id
  where jobs.org_id = new.org_id and jobs.id = new.id and jobs.kind = 'extraction';
  return null;
end;
$$;

comment on function rag.move_graph_of_document is
  'Trigger that moves the mentions, relations and extraction of a document to its new collection or owner. '
  'rag.index_changed_title has enqueued the extraction again.';

create trigger move_names_of_changed_documents after update of collection_id, owner_id on rag.documents
  for each row
  when ((old.collection_id, old.owner_id) is distinct from (new.collection_id, new.owner_id))
  execute function rag.move_graph_of_document();

create function rag.names_of_document(org_id uuid, document_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(name.entity, true), '{}')
    from (
      select mentions.entity
      from rag.mentions
      where mentions.org_id = names_of_document.org_id and mentions.document_id = names_of_document.document_id
      union
      select title_entities.entity
      from rag.title_entities
      where title_entities.org_id = names_of_document.org_id
        and title_entities.document_id = names_of_document.document_id
    ) as name);
end;
$$;

comment on function rag.names_of_document is
  'The keys of the names in a document''s text and title, as the keys of an object. Computed once for each '
  'document, however many relations it states.';

create function rag.delete_dangling_relations(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  names constant jsonb := rag.names_of_document(org_id, document_id);
begin
  delete from rag.relations
  where relations.org_id = delete_dangling_relations.org_id
    and relations.document_id = delete_dangling_relations.document_id
    and not (names ? relations.subject and names ? relations.object);
end;
$$;

comment on function rag.delete_dangling_relations is
  'Delete a document''s relations if the document no longer names the subject or the object.';
