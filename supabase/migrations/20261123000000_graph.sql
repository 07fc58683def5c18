-- The knowledge graph: names, what documents are about, what chunks name and relate (sql/34, sql/37 to sql/39), how far
-- they have been read (sql/42), and searching by all that (sql/73 to sql/77).

-- Naming the documents that are there may take minutes.
set local statement_timeout = 0;

alter table rag.settings
  add column graph_share real not null default 0.3 check (graph_share between 0 and 1),
  add column mentions_read integer not null default 100 check (mentions_read between 10 and 10000),
  add column graph_milliseconds integer not null default 200 check (graph_milliseconds between 1 and 10000);

-- What makes two names one: an entity is a folded name within an org. It has no row of its own. It is there as long as
-- something that the caller sees names it: a document's title (37_subjects.sql), a chunk (38_mentions.sql). So an
-- entity of somebody's private document is nobody else's, and a name that two orgs share joins nothing.

-- Letters without case and accents, and without what shows nothing; what stands between words is one blank. An
-- apostrophe is nothing (O'Brien), nor is an English genitive (Boritzer's); + and # stay, for C++ and C#. Marks that
-- are letters' own, as in Devanagari and Thai, are kept. What is punctuation is said here: versions of Postgres differ.
create function rag.fold(content text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select normalize(btrim(regexp_replace(regexp_replace(translate(replace(replace(replace(
      regexp_replace(lower(normalize(replace(content, '´', ''''), nfkd)),
        -- Accents; points of Hebrew and Arabic; joiners, directions, variants.
        '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f'
        '\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc'
        '\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]',
        '', 'g'),
      'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øłđðıς', 'olddiσ'),
    '[''’‘`ʼ](?:s\M)?', '', 'g'),
    -- Of ASCII and Latin-1, of other alphabets, of all of them, of East Asia; emoji.
    '[\u0001-"$-*,-/:-@[-`{-¿×÷\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u0609-\u060d'
    '\u061b-\u061f\u066a-\u066d\u06d4\u0964\u0965\u0970\u0df4\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u0f3a-\u0f3d'
    '\u104a-\u104f\u10fb\u1360-\u1368\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u2000-\u20cf\u2190-\u2bff'
    '\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30a0\u30fb\ufe30-\ufe4f'
    '\U0001f000-\U0001faff]+', ' ', 'g')), nfc);
$$;

-- A name as an entity: without an article before it, and what stands behind it in parentheses, unless that is all. An
-- entity's own is itself.
create function rag.entity(name text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select rtrim(left(regexp_replace(
    coalesce(nullif(rag.fold(regexp_replace(name, '\s*[(（][^()（）]*[)）]\s*$', '')), ''), rag.fold(name)),
    '^(?:the )+(?=.)', ''), 200));
$$;

-- How a folded name sounds, roughly: words that are spelled differently by mistake mostly sound alike. Vowels count at
-- the beginning of a word alone, and there are one, Greek and Cyrillic ones too; so are c, k and q, s and z, v and w.
create function rag.sound(entity text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select regexp_replace(regexp_replace(regexp_replace(translate(replace(replace(entity, 'ph', 'f'), 'x', 'ks'),
    'cqzwyj', 'kksvii'),
    '\m[aeiouαεηιουωаеиоуыэюя]', 'a', 'g'), '\Y[aeiouhαεηιουωаеиоуыэюяьъ]', '', 'g'),
    '(.)\1+', '\1', 'g');
$$;

-- How much a folded name and others are alike, 0 to 1: the share of their pairs of letters that they have in common
-- (Dice, 1945). Those that are not as long, by a third, are left out.
create function rag.likenesses(name text, others text[])
returns table (entity text, likeness double precision)
language plpgsql immutable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with mine as (
    select substr(' ' || name || ' ', place, 2) as letters, count(*) as times
    from generate_series(1, length(name) + 1) as place
    group by 1
  ), theirs as (
    select other.entity, substr(' ' || other.entity || ' ', place, 2) as letters, count(*) as times
    from (select distinct unnest(others) as entity) as other
    cross join generate_series(1, length(other.entity) + 1) as place
    where length(other.entity) between 0.75 * length(name) and 1.34 * length(name)
    group by 1, 2
  )
  select theirs.entity,
    (2.0 * sum(least(mine.times, theirs.times)) / (length(name) + length(theirs.entity) + 2))::double precision
  from theirs
  join mine on mine.letters = theirs.letters
  group by theirs.entity;
end;
$$;

-- What a title names, and how surely: itself, with and without what it has in parentheses, and its parts. "Incident 42:
-- Billing outage" is about both.
create function rag.names_of_title(title text)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.place))[1], max(found.weight)
  from (
    select rag.entity(title), title, 1.0::real, 0
    union all
    select rtrim(left(regexp_replace(rag.fold(title), '^(?:the )+(?=.)', ''), 200)), title, 1.0, 0
    union all
    -- A file's name without its ending.
    select rag.entity(named.base), named.base, 0.9, 0
    from (select regexp_replace(title, '^(.*/)?([^/]+)\.[A-Za-z][A-Za-z0-9]{0,4}$', '\2') as base) as named
    where named.base <> title
    union all
    select rag.entity(part), btrim(part), 0.6, place::integer
    from regexp_split_to_table(title, '\s*[:;|–—·•»>()（）《》「」『』]\s*|\s+[-/]\s+|,\s+|，|、')
      with ordinality as parts (part, place)
    where place <= 8 and part <> title
  ) as found (entity, name, weight, place)
  where length(found.entity) > 1
  group by found.entity;
$$;

revoke all on function rag.fold(text), rag.entity(text), rag.sound(text), rag.likenesses(text, text[]),
  rag.names_of_title(text) from public, anon, service_role;
grant execute on function rag.fold(text), rag.entity(text), rag.sound(text), rag.likenesses(text, text[]),
  rag.names_of_title(text) to authenticated;

-- What documents are about, as far as their titles say: one row for each name in a title. Kept by triggers on
-- documents, so that whoever writes a title, and however, names its subjects. Graph search goes from a name to the
-- documents about it, and from what these name on to the documents about that.

create table rag.subjects (
  org_id uuid not null,
  document_id uuid not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null,
  -- 1 is the whole title.
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, entity),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

-- rag.link and rag.reach: the documents about an entity.
create index subjects_by_entity on rag.subjects (org_id, entity, weight desc)
  include (document_id, collection_id, owner_id);

-- The same within a collection, which may be a small part of its org.
create index subjects_by_collection on rag.subjects (org_id, collection_id, entity, weight desc)
  include (document_id, owner_id);

-- rag.link: names that sound like one, or begin or end with it. The ending is the sound backwards.
create index subjects_by_sound on rag.subjects (org_id, sound) include (entity, collection_id, owner_id);
create index subjects_by_ending on rag.subjects (org_id, ending) include (entity, collection_id, owner_id);

alter table rag.subjects enable row level security;
alter table rag.subjects force row level security;

create policy "members use their org's subjects" on rag.subjects
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.subjects
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.subjects
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.subjects
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.subjects to authenticated;

-- Whether a collection's documents go into the graph: unless its config says no.
create function rag.is_graphed(org_id uuid, collection_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select collections.config -> 'enable_knowledge_graph' is distinct from 'false'::jsonb
  from rag.collections
  where collections.org_id = is_graphed.org_id and collections.id = is_graphed.collection_id;
$$;

-- What a document's title names.
create function rag.add_subjects(document rag.documents)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.subjects (org_id, document_id, entity, collection_id, owner_id, name, weight, sound, ending)
  select document.org_id, document.id, found.entity, document.collection_id, document.owner_id, found.name,
    found.weight, heard.sound, reverse(heard.sound)
  from rag.names_of_title(document.title) as found
  cross join lateral (select rag.sound(found.entity)) as heard (sound)
  where rag.is_graphed(document.org_id, document.collection_id)
  on conflict do nothing;
$$;

create function rag.index_subjects()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if tg_op = 'UPDATE' then
    delete from rag.subjects where subjects.org_id = new.org_id and subjects.document_id = new.id;
  end if;
  perform rag.add_subjects(new);
  if tg_op = 'UPDATE' then
    perform rag.read_again(new.org_id, new.id);
  end if;
  return null;
end;
$$;

create trigger index_subjects_of_new_documents after insert on rag.documents
  for each row execute function rag.index_subjects();

create trigger index_subjects_of_changed_documents
  after update of title, collection_id, owner_id on rag.documents
  for each row
  when ((old.title, old.collection_id, old.owner_id) is distinct from (new.title, new.collection_id, new.owner_id))
  execute function rag.index_subjects();

revoke all on function rag.is_graphed(uuid, uuid), rag.add_subjects(rag.documents), rag.index_subjects()
  from public, anon, service_role;
grant execute on function rag.is_graphed(uuid, uuid), rag.add_subjects(rag.documents), rag.index_subjects()
  to authenticated;

-- Which names stand in which chunks: the evidence that an entity is there at all. Rows come with the chunks
-- (55_ingest.sql), or from the worker when nobody has looked yet (72_extract.sql), and go with them.

create table rag.mentions (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null check (length(name) between 1 and 200 and rag.shows_only(name)),
  -- person, organization, team, place, service, work, identifier, email, date, or name: not known which.
  kind text not null check (kind ~ '^[a-z][a-z_]{0,39}$'),
  -- As the chunk writes it, where it does so differently: a surname alone, an abbreviation.
  said text[] not null check (cardinality(said) <= 20 and rag.shows_only(array_to_string(said, ' '))),
  -- How prominent it is there, 0 to 1.
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, ordinal, entity),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade
);

-- rag.link and rag.reach: the chunks that name an entity, those where it is most prominent first.
create index mentions_by_entity on rag.mentions (org_id, entity, weight desc)
  include (document_id, ordinal, collection_id, owner_id);

-- The same within a collection, which may be a small part of an org that names the entity everywhere.
create index mentions_by_collection on rag.mentions (org_id, collection_id, entity, weight desc)
  include (document_id, ordinal, owner_id);

-- rag.link: names that sound like one, or begin or end with it. The ending is the sound backwards.
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

grant select, insert, update, delete on rag.mentions to authenticated;

-- What chunks say of how entities are related: one row for each edge and chunk that says so, so that an edge lives as
-- long as its evidence. That two names stand together is no row here: rag.mentions says it.

create table rag.relations (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  subject text collate "C" not null check (length(subject) between 1 and 200),
  -- Read forwards: subject OWNED_BY object.
  type text collate "C" not null check (type ~ '^[A-Z][A-Z_]{1,49}$'),
  object text collate "C" not null check (length(object) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  confidence real not null check (confidence > 0 and confidence <= 1),
  primary key (org_id, document_id, ordinal, subject, type, object),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade,
  check (subject <> object)
);

-- rag.edges_among, both ways; the surest first.
create index relations_by_subject on rag.relations (org_id, subject, confidence desc)
  include (type, object, document_id, ordinal, collection_id, owner_id);
create index relations_by_object on rag.relations (org_id, object, confidence desc)
  include (type, subject, document_id, ordinal, collection_id, owner_id);

-- rag.link: other names of an entity, which may have any number of other edges.
create index relations_aliases_by_subject on rag.relations (org_id, subject, confidence desc)
  include (object, collection_id, owner_id) where type = 'ALIAS_OF';
create index relations_aliases_by_object on rag.relations (org_id, object, confidence desc)
  include (subject, collection_id, owner_id) where type = 'ALIAS_OF';

alter table rag.relations enable row level security;
alter table rag.relations force row level security;

create policy "members use their org's relations" on rag.relations
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.relations
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.relations
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.relations
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.relations to authenticated;

-- Mentions, relations and how far they are read follow their document, should it go to another collection or owner.
create function rag.move_names()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.mentions set collection_id = new.collection_id, owner_id = new.owner_id
  where mentions.org_id = new.org_id and mentions.document_id = new.id;
  update rag.relations set collection_id = new.collection_id, owner_id = new.owner_id
  where relations.org_id = new.org_id and relations.document_id = new.id;
  update rag.extractions
  set collection_id = new.collection_id, owner_id = new.owner_id, user_id = coalesce(auth.uid(), user_id), lease = null
  where extractions.org_id = new.org_id and extractions.document_id = new.id;
  return null;
end;
$$;

create trigger move_names_of_changed_documents after update of collection_id, owner_id on rag.documents
  for each row
  when ((old.collection_id, old.owner_id) is distinct from (new.collection_id, new.owner_id))
  execute function rag.move_names();

-- What a document names, in its text or its title, as the keys of an object: asked once a document, however many
-- relations it states.
create function rag.names_in(org_id uuid, document_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(named.entity, true), '{}')
    from (
      select mentions.entity
      from rag.mentions
      where mentions.org_id = names_in.org_id and mentions.document_id = names_in.document_id
      union
      select subjects.entity
      from rag.subjects
      where subjects.org_id = names_in.org_id and subjects.document_id = names_in.document_id
    ) as named);
end;
$$;

-- Relations of a document one of whose ends nothing in it names any more are nobody's.
create function rag.forget_loose_relations(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  names constant jsonb := rag.names_in(org_id, document_id);
begin
  delete from rag.relations
  where relations.org_id = forget_loose_relations.org_id and relations.document_id = forget_loose_relations.document_id
    and not (names ? relations.subject and names ? relations.object);
end;
$$;

-- The numbered entries of a list in a chunk's JSON that are objects; 200 are looked at.
create function rag.entries_of(body jsonb, list text)
returns table (entry jsonb, number bigint)
language sql immutable security invoker set search_path = ''
as $$
  select listed.entry, listed.number
  from jsonb_array_elements(case jsonb_typeof(body -> list) when 'array' then body -> list else '[]' end)
    with ordinality as listed (entry, number)
  where listed.number <= 200 and jsonb_typeof(listed.entry) = 'object';
$$;

-- A text in a list's entry that may be shown and is no longer than a name; null otherwise.
create function rag.said_in(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select said.surface
  from (select value #>> '{}') as said (surface)
  where jsonb_typeof(value) = 'string' and length(said.surface) between 1 and 200 and rag.shows_only(said.surface);
$$;

-- A number in a list's entry, no more than 1 and no less than 0; null for what is no number.
create function rag.share_in(value jsonb)
returns real
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value) when 'number' then round(least(1, greatest(0, value::text::numeric)), 6)::real end;
$$;

-- Store what each chunk of a document names and relates: chunks as rag_put_document takes them, the first of them
-- with that ordinal. What is no name is left out, whatever stands in its place: a document is worth more than its
-- names. Of one entity there is one row a chunk, and relations need both ends named in the document. At most 200 names
-- and 200 relations a chunk.
create function rag.insert_names(org_id uuid, document_id uuid, chunks jsonb, first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  names jsonb;
begin
  insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, owner_id, name, kind, said, weight,
    sound, ending)
  select stored.org_id, stored.id, folded.ordinal, folded.entity, stored.collection_id, stored.owner_id, folded.name,
    folded.kind, folded.said, folded.weight, heard.sound, reverse(heard.sound)
  from rag.documents as stored
  cross join lateral (
    select insert_names."first" + named.place::integer - 1 as ordinal, known.entity,
      (array_agg(named.name order by named.weight desc, named.number))[1] as name,
      (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.number))[1] as kind,
      coalesce((array_agg(distinct surface.said) filter (where surface.said is not null))[:20], '{}') as said,
      max(named.weight) as weight
    from (
      select item.place, listed.number, listed.entry -> 'said' as said, rag.said_in(listed.entry -> 'name') as name,
        coalesce(rag.share_in(listed.entry -> 'weight'), 0.5) as weight,
        case when listed.entry ->> 'kind' ~ '^[a-z][a-z_]{0,39}$' then listed.entry ->> 'kind' else 'name' end as kind
      from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
      cross join lateral rag.entries_of(item.body, 'names') as listed
    ) as named
    cross join lateral (select rag.entity(named.name) as entity) as known
    left join lateral (
      select rag.said_in(listed.entry) as said
      from jsonb_array_elements(case jsonb_typeof(named.said) when 'array' then named.said
        else jsonb_build_array(named.name) end) with ordinality as listed (entry, number)
      where listed.number <= 20
    ) as surface on true
    where named.name is not null
    group by named.place, known.entity
  ) as folded
  cross join lateral (select rag.sound(folded.entity)) as heard (sound)
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id
    and length(folded.entity) between 1 and 200
  on conflict do nothing;

  names := rag.names_in(insert_names.org_id, insert_names.document_id);
  insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, owner_id, confidence)
  select stored.org_id, stored.id, said.ordinal, said.subject, said.type, said.object, stored.collection_id,
    stored.owner_id, said.confidence
  from rag.documents as stored
  cross join lateral (
    select insert_names."first" + item.place::integer - 1 as ordinal,
      rag.entity(rag.said_in(listed.entry -> 'subject')) as subject, listed.entry ->> 'type' as type,
      rag.entity(rag.said_in(listed.entry -> 'object')) as object,
      max(rag.share_in(listed.entry -> 'confidence')) as confidence
    from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
    cross join lateral rag.entries_of(item.body, 'relations') as listed
    group by 1, 2, 3, 4
  ) as said
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id and said.subject <> said.object
    and said.type ~ '^[A-Z][A-Z_]{1,49}$' and said.confidence > 0
    and names ? said.subject and names ? said.object
  on conflict do nothing;
end;
$$;

revoke all on function rag.move_names(), rag.names_in(uuid, uuid), rag.forget_loose_relations(uuid, uuid),
  rag.entries_of(jsonb, text), rag.said_in(jsonb), rag.share_in(jsonb), rag.insert_names(uuid, uuid, jsonb, integer)
  from public, anon, service_role;
grant execute on function rag.move_names(), rag.names_in(uuid, uuid), rag.forget_loose_relations(uuid, uuid),
  rag.entries_of(jsonb, text), rag.said_in(jsonb), rag.share_in(jsonb), rag.insert_names(uuid, uuid, jsonb, integer)
  to authenticated;

-- How far the reading of a document for names has come: one row for each document with chunks, of a collection whose
-- documents go into the graph. Most are read where they are brought, by the rules, and done at once. What nobody has
-- read yet, or what a model is to read as well, the worker reads chunk by chunk (72_extract.sql), in the name of who
-- brought the document.

create table rag.extractions (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  -- In whose name it is read; null: nobody's yet (rag_build_graph).
  user_id uuid,
  -- Who has read it all: 0 nobody, 1 the rules, 2 a model.
  level smallint not null check (level between 0 and 2),
  -- The model's name, where one has begun or ended.
  model text check (length(model) between 1 and 100),
  -- The chunk that comes next, while it is being read.
  next_ordinal integer not null default 0 check (next_ordinal >= 0),
  prompt_tokens bigint not null default 0 check (prompt_tokens >= 0),
  completion_tokens bigint not null default 0 check (completion_tokens >= 0),
  attempts integer not null default 0,
  -- Not before this. While it is read: when the lease ends, and anybody may claim it again. Null: given up.
  due_at timestamptz default now(),
  lease uuid,
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.shows_only(error_message)),
  updated_at timestamptz not null default now(),
  primary key (org_id, document_id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

alter table rag.extractions enable row level security;
alter table rag.extractions force row level security;

create policy "members use their org's extractions" on rag.extractions
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.extractions
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.extractions
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.extractions
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.extractions to authenticated;

-- Documents have new chunks: who has read them, if they come with names, is who brought them. `later` chunks of a
-- document add to what came before.
create function rag.note_extraction(org_id uuid, document_id uuid, chunks jsonb, later boolean)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.extractions as known (org_id, document_id, collection_id, owner_id, user_id, level)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, auth.uid(),
    case when exists (
        select from jsonb_array_elements(note_extraction.chunks) as item (body)
        where jsonb_typeof(item.body -> 'names') is distinct from 'array')
      then 0 else 1 end
  from rag.documents as stored
  where stored.org_id = note_extraction.org_id and stored.id = note_extraction.document_id
  on conflict (org_id, document_id) do update
  set level = case when note_extraction.later then least(known.level, excluded.level) else excluded.level end,
    user_id = excluded.user_id, model = null, next_ordinal = 0, attempts = 0, due_at = now(), lease = null,
    prompt_tokens = 0, completion_tokens = 0, error_code = null, error_message = null, updated_at = now();
$$;

-- A document has another title: what was said of the old one is nobody's any more, and it is to be read again.
create function rag.read_again(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.forget_loose_relations(read_again.org_id, read_again.document_id);
  update rag.extractions
  set level = 0, next_ordinal = 0, attempts = 0, due_at = now(), lease = null, user_id = coalesce(auth.uid(), user_id)
  where extractions.org_id = read_again.org_id and extractions.document_id = read_again.document_id;
end;
$$;

revoke all on function rag.note_extraction(uuid, uuid, jsonb, boolean), rag.read_again(uuid, uuid)
  from public, anon, service_role;
grant execute on function rag.note_extraction(uuid, uuid, jsonb, boolean), rag.read_again(uuid, uuid)
  to authenticated;

-- Documents' chunks, numbered from `first` on. It repeats the document's row in them.
create or replace function rag.insert_chunks(org_id uuid, documents rag.chunked[], first integer)
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

  perform rag.insert_names(insert_chunks.org_id, chunked.document_id, chunked.chunks, insert_chunks.first),
    rag.note_extraction(insert_chunks.org_id, chunked.document_id, chunked.chunks, insert_chunks.first > 0)
  from unnest(insert_chunks.documents) as chunked
  join rag.documents as stored on stored.org_id = insert_chunks.org_id and stored.id = chunked.document_id
  where rag.is_graphed(stored.org_id, stored.collection_id);
end;
$$;

-- What the graph reached is scored with what the legs bring.
drop function rag.find(extensions.halfvec, text, rag.scope, text, text, integer, integer);
-- The hits of both legs, best first: of the nearest, and of those with most of the words, `wanted` each. mode and
-- fusion: as rag_search takes them. shown: how many somebody will see, whose order matters most. complete: whether
-- asking for more would bring no more. reached: chunks that somebody else brings, to be scored by both legs. vector_ms,
-- lexical_ms: how long each leg took; the words' one orders both.
create function rag.find(needle extensions.halfvec, query_text text, scope rag.scope, mode text, fusion text,
  wanted integer, shown integer, reached rag.hit[] default '{}', out hits rag.hit[], out exact boolean,
  out considered integer, out complete boolean, out vector_ms real, out lexical_ms real)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  started timestamptz := clock_timestamp();
  -- The words find a subject too, which then takes the place of something else.
  spare constant integer := num_nonnulls(scope.without_document, scope.without_chunk);
  by_words rag.scope := scope;
  near rag.hit[];
  asked rag.question;
  documents rag.reference[];
begin
  considered := 0;
  if mode <> 'keyword' then
    select nearest.hits, nearest.exact, nearest.considered into near, exact, considered
    from rag.nearest(needle, scope, wanted) as nearest;
    vector_ms := rag.milliseconds_since(started);
    hits := near;
  end if;
  if mode <> 'semantic' then
    started := clock_timestamp();
    asked := rag.question(query_text, scope);
    -- Left out afterwards: as a condition it would have every document of the org looked at.
    by_words.without_document := null;
    documents := array(
      select (document.org_id, document.document_id)::rag.reference
      from unnest(rag.documents_with(asked, by_words, 4 * wanted + spare)) as document
      where document.document_id is distinct from scope.without_document);
    hits := rag.score(asked,
      documents || array(select (hit.org_id, hit.document_id)::rag.reference from unnest(near || reached) as hit),
      near || reached, needle, scope, mode, fusion, wanted + spare, shown, false);
    if mode = 'hierarchical' then
      hits := rag.score(asked, rag.best_documents(hits, shown), null, needle, scope, mode, fusion, wanted, shown,
        true);
    end if;
    lexical_ms := rag.milliseconds_since(started);
  end if;
  complete := coalesce(cardinality(case when mode = 'keyword' then hits else near end), 0) < wanted;
end;
$$;

revoke all on function
  rag.find(extensions.halfvec, text, rag.scope, text, text, integer, integer, rag.hit[])
  from public, anon, service_role;
grant execute on function
  rag.find(extensions.halfvec, text, rag.scope, text, text, integer, integer, rag.hit[])
  to authenticated;

-- Entity linking: which entities a question names. Longer names come before shorter ones within them, what is written
-- exactly before what sounds alike. Every look-up is an equality or a range in an index, so row security costs nothing
-- more, and reads a bounded number of rows.

-- A name in a question: the entity, how surely it is meant (0 to 1), and which of the question's words it takes.
create type rag.seed as (org_id uuid, entity text, weight double precision, start integer, finish integer);

-- The words of a question's beginning that hold a capital or a digit, folded.
create function rag.capitals(query_text text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select array(
    select distinct word
    from regexp_matches(left(query_text, 2000), '[^\s]*[[:upper:][:digit:]][^\s]*', 'g') as found (parts)
    cross join lateral unnest(string_to_array(rag.fold(found.parts[1]), ' ')) as word
    where word <> '');
$$;

-- The words of a folded question, 64 at most, each with the blank behind it: what stands between blanks, and in scripts
-- that are written without, or where words take endings (Thai to Burmese, Khmer, kana, Han, Hangul), every character.
create function rag.words_asked(folded text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select coalesce((array_agg(found.parts[1]))[:64], '{}')
  from regexp_matches(folded, '((?:[^ \u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff'
    '\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+|[^ ]) ?)', 'g') as found (parts);
$$;

-- The names that stand in the question as they stand in documents: of overlapping ones the longest. words: the folded
-- question's (rag.words_asked); capitals: those of them that look like a part of a name. What has none is less surely
-- meant as one, unless its script knows no capitals.
create function rag.link_exactly(words text[], capitals text[], scope rag.scope)
returns rag.seed[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed[] := '{}';
  taken boolean[];
  at_org uuid;
  named record;
begin
  for named in
    with gram as (
      select start, size, rtrim(array_to_string(words[start:start + size - 1], '')) as entity
      from generate_series(1, cardinality(words)) as start
      cross join lateral generate_series(1, least(16, cardinality(words) - start + 1)) as size
    )
    select org.id as org_id, gram.start, gram.size, gram.entity,
      case when gram.size > 1 then 1.0 else 0.8 end
        * case when capitals && string_to_array(gram.entity, ' ') or lower(gram.entity) = upper(gram.entity) then 1
          else 0.5 end as weight
    from gram
    cross join unnest(scope.org_ids) as org (id)
    -- Offset 0 keeps these look-ups of each: the planner would read all names into a table of its own.
    cross join lateral (
      (select from rag.subjects
      where scope.collection_ids is null and subjects.org_id = org.id and subjects.entity = gram.entity
      limit 1)
      union all
      (select from unnest(scope.collection_ids) as home (id)
      cross join lateral (
        select from rag.subjects
        where subjects.org_id = org.id and subjects.collection_id = home.id and subjects.entity = gram.entity
        limit 1
      ) as inside
      limit 1)
      union all
      (select from rag.mentions
      where scope.collection_ids is null and mentions.org_id = org.id and mentions.entity = gram.entity
      limit 1)
      union all
      (select from unnest(scope.collection_ids) as home (id)
      cross join lateral (
        select from rag.mentions
        where mentions.org_id = org.id and mentions.collection_id = home.id and mentions.entity = gram.entity
        limit 1
      ) as inside
      limit 1)
      limit 1 offset 0
    ) as known
    where length(gram.entity) between 2 and 200
      and (gram.size > 1 or gram.entity ~ '\D' and rag.words(config, gram.entity) <> '')
    order by org.id, gram.size desc, gram.start
  loop
    if named.org_id is distinct from at_org then
      at_org := named.org_id;
      taken := array_fill(false, array[cardinality(words)]);
    end if;
    continue when true = any (taken[named.start:named.start + named.size - 1]);
    for place in named.start..named.start + named.size - 1 loop
      taken[place] := true;
    end loop;
    seeds := seeds || (named.org_id, named.entity, named.weight, named.start, named.start + named.size - 1)::rag.seed;
  end loop;
  return seeds;
end;
$$;

-- Up to `wanted` entities of an org that sound like a name, or begin or end with it, most alike first.
create function rag.alike(org_id uuid, name text, scope rag.scope, wanted integer)
returns table (entity text, likeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  heard constant text := rag.sound(name);
  tail constant text := reverse(heard);
  -- Behind whatever begins with what it is put behind.
  beyond constant text := chr(1114111);
  -- What a mistake at one end leaves of the other.
  kept constant integer := greatest(2, (2 * length(heard) + 2) / 3);
  near text[];
begin
  if length(heard) < 2 then
    return;
  end if;
  near := array(
    (select named.entity from rag.subjects as named
    where named.org_id = alike.org_id and named.sound >= left(heard, kept) and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = alike.org_id and named.sound >= left(heard, kept) and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200)
    union
    (select named.entity from rag.subjects as named
    where named.org_id = alike.org_id and named.ending >= left(tail, kept) and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = alike.org_id and named.ending >= left(tail, kept) and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200));
  return query
  select found.entity, max(found.likeness)
  from (
    select found.entity, found.likeness
    from rag.likenesses(alike.name, near) as found
    -- INC-4822 is another than INC-4821.
    where regexp_replace(found.entity, '[^0-9]', '', 'g') = regexp_replace(alike.name, '[^0-9]', '', 'g')
    union all
    -- A part of a name, whole words of it: a surname, a first name.
    select whole, 0.75
    from unnest(near) as whole
    where starts_with(whole, alike.name || ' ') or right(whole, length(alike.name) + 1) = ' ' || alike.name
  ) as found
  group by found.entity
  order by 2 desc, 1
  limit wanted;
end;
$$;

-- The names that stand in the question otherwise than in any document: misspelled, or a part of one. Runs of words that
-- look like names and that link_exactly left, of five words at most, the longest first.
create function rag.link_roughly(words text[], capitals text[], known rag.seed[], scope rag.scope)
returns rag.seed[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed[] := '{}';
  open boolean[];
  at_org uuid;
  tried integer;
  best record;
  name text;
begin
  foreach at_org in array scope.org_ids loop
    open := array(
      select rtrim(words[place]) = any (capitals) and rag.words(config, words[place]) <> ''
        and not exists (
          select from unnest(known) as seed
          where seed.org_id = at_org and place between seed.start and seed.finish)
      from generate_series(1, cardinality(words)) as place
      order by place);
    for size in reverse least(5, cardinality(words))..1 loop
      tried := 0;
      for start in 1..cardinality(words) - size + 1 loop
        continue when false = any (open[start:start + size - 1]);
        name := rtrim(array_to_string(words[start:start + size - 1], ''));
        -- Nobody misspells a number; and a year is a part of many names.
        continue when length(name) < 4 or name !~ '[^0-9 ]';
        tried := tried + 1;
        exit when tried > 4;
        select alike.entity, alike.likeness into best from rag.alike(at_org, name, scope, 1) as alike;
        continue when not found or best.likeness < 0.6;
        for place in start..start + size - 1 loop
          open[place] := false;
        end loop;
        seeds := seeds || (at_org, best.entity, 0.8 * best.likeness, start, start + size - 1)::rag.seed;
      end loop;
    end loop;
  end loop;
  return seeds;
end;
$$;

-- The entities that the question names, and those that are the same by another name; at most 32, the surest first.
create function rag.link(query_text text, scope rag.scope)
returns rag.seed[]
language plpgsql stable security invoker set search_path = ''
-- So that the indexes are read in their order, and not all of a name to sort it.
set enable_sort = off
as $$
declare
  words constant text[] := rag.words_asked(rag.fold(query_text));
  capitals constant text[] := rag.capitals(query_text);
  unfiltered constant boolean := not rag.filters_documents(scope);
  seeds rag.seed[];
begin
  if cardinality(words) = 0 then
    return '{}';
  end if;
  seeds := rag.link_exactly(words, capitals, scope);
  seeds := seeds || rag.link_roughly(words, capitals, seeds, scope);
  return array(
    select (found.org_id, found.entity, max(found.weight), min(found.start), min(found.finish))::rag.seed
    from (
      select seed.* from unnest(seeds) as seed
      union all
      select seed.org_id, same.entity, 0.9 * seed.weight * same.confidence, seed.start, seed.finish
      from unnest(seeds) as seed
      cross join lateral (
        (select relations.object as entity, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.subject = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_within(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        union all
        (select relations.subject, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.object = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_within(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        offset 0
      ) as same
    ) as found
    group by found.org_id, found.entity
    order by max(found.weight) desc, min(found.start), found.org_id, found.entity
    limit 32);
end;
$$;

revoke all on function rag.capitals(text), rag.words_asked(text), rag.link_exactly(text[], text[], rag.scope),
  rag.alike(uuid, text, rag.scope, integer), rag.link_roughly(text[], text[], rag.seed[], rag.scope),
  rag.link(text, rag.scope) from public, anon, service_role;
grant execute on function rag.capitals(text), rag.words_asked(text), rag.link_exactly(text[], text[], rag.scope),
  rag.alike(uuid, text, rag.scope, integer), rag.link_roughly(text[], text[], rag.seed[], rag.scope),
  rag.link(text, rag.scope) to authenticated;

-- From the entities that a question names to the chunks that may answer it. A document about one of them is first, a
-- chunk that names it second; and from what those name on, one hop further, to the documents about that. What an edge
-- is worth depends on how it is known: said in so many words, and asked for; said; or only named together. All
-- steps read a bounded number of rows, so an entity in every document costs no more than another; and each begins only
-- while there is time.

-- A chunk on its way, or with ordinal null all of a document; and the entity that leads there most surely.
create type rag.reached as (
  org_id uuid, document_id uuid, ordinal integer, weight double precision, entity text
);

-- An entity that stands with a seed: how strongly, by which chunk, and as what.
create type rag.neighbour as (
  org_id uuid, entity text, weight double precision, seed text, document_id uuid, ordinal integer
);

-- The documents about the entities, and the chunks that name them, so many of either for each. An entity that is named
-- more often says less; how often is counted no further than is read. Of an org, or of the scope's collections one by
-- one: one of the two look-ups is never begun.
create function rag.places_of(seeds rag.seed[], scope rag.scope, subjects_each integer, mentions_each integer,
  mention_share double precision)
returns rag.reached[]
language plpgsql stable security invoker set search_path = ''
-- Under row security the planner expects hardly a row, and would read all of a name to sort it.
set enable_sort = off
as $$
begin
  return array(
    with about as materialized (
      select seed.org_id, found.document_id, null::integer as ordinal, seed.entity,
        -- Of several documents with that title each is meant less.
        seed.weight * found.weight / (1 + 0.3 * (count(*) over (partition by seed.org_id, seed.entity) - 1)) as weight
      from unnest(seeds) as seed
      cross join lateral (
        (select subjects.document_id, subjects.weight
        from rag.subjects
        where scope.collection_ids is null and subjects.org_id = seed.org_id and subjects.entity = seed.entity
        order by subjects.weight desc
        limit subjects_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select subjects.document_id, subjects.weight
          from rag.subjects
          where subjects.org_id = seed.org_id and subjects.collection_id = home.id and subjects.entity = seed.entity
          order by subjects.weight desc
          limit subjects_each
        ) as inside
        order by inside.weight desc
        limit subjects_each)
      ) as found
    ), named as materialized (
      select seed.org_id, found.document_id, found.ordinal, seed.entity,
        mention_share * seed.weight * (0.5 + 0.5 * found.weight)
          / sqrt(1 + count(*) over (partition by seed.org_id, seed.entity) / 24.0) as weight
      from unnest(seeds) as seed
      cross join lateral (
        (select mentions.document_id, mentions.ordinal, mentions.weight
        from rag.mentions
        where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
        order by mentions.weight desc
        limit mentions_each)
        union all
        (select inside.document_id, inside.ordinal, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select mentions.document_id, mentions.ordinal, mentions.weight
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
          order by mentions.weight desc
          limit mentions_each
        ) as inside
        order by inside.weight desc
        limit mentions_each)
      ) as found
    )
    select (found.org_id, found.document_id, found.ordinal,
      -- What several lead to is worth more: as if each were a chance of its own.
      1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      (array_agg(found.entity order by found.weight desc, found.entity))[1])::rag.reached
    from (select * from about union all select * from named) as found
    group by found.org_id, found.document_id, found.ordinal);
end;
$$;

-- Whether a document, or a chunk of one, is among those that a scope asks for: rag.conditions, of what is at hand.
create function rag.is_within(document_id uuid, source_type text, lang text, occurred_at timestamptz, scope rag.scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.source_types is null or source_type = any (scope.source_types))
    and (scope.lang is null or lower(lang) = scope.lang or starts_with(lower(lang), scope.lang || '-'))
    and (scope.date_from is null or occurred_at >= scope.date_from)
    and (scope.date_to is null or occurred_at <= scope.date_to)
    and (scope.document_ids is null or document_id = any (scope.document_ids))
    and (scope.without_document is null or document_id <> scope.without_document);
$$;

-- The same of a document by its id.
create function rag.is_document_within(org_id uuid, document_id uuid, scope rag.scope)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.documents
    where documents.org_id = is_document_within.org_id and documents.id = is_document_within.document_id
      and rag.is_within(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope));
$$;

-- Those of the seeds that a document of the scope names, among the places that are read of each.
create function rag.seeds_within(seeds rag.seed[], scope rag.scope, subjects_each integer, mentions_each integer)
returns rag.seed[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
begin
  if not rag.filters_documents(scope) then
    return seeds;
  end if;
  return array(
    select seed
    from unnest(seeds) as seed
    where exists (
      select from (
        (select subjects.document_id, subjects.weight
        from rag.subjects
        where scope.collection_ids is null and subjects.org_id = seed.org_id and subjects.entity = seed.entity
        order by subjects.weight desc
        limit subjects_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select subjects.document_id, subjects.weight
          from rag.subjects
          where subjects.org_id = seed.org_id and subjects.collection_id = home.id and subjects.entity = seed.entity
          order by subjects.weight desc
          limit subjects_each
        ) as inside
        order by inside.weight desc
        limit subjects_each)
        union all
        (select mentions.document_id, mentions.weight
        from rag.mentions
        where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
        order by mentions.weight desc
        limit mentions_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select mentions.document_id, mentions.weight
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
          order by mentions.weight desc
          limit mentions_each
        ) as inside
        order by inside.weight desc
        limit mentions_each)
      ) as named
      cross join lateral (
        select from rag.documents
        where documents.org_id = seed.org_id and documents.id = named.document_id
          and rag.is_within(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
        offset 0
      ) as meant));
end;
$$;

-- Those of a scope that filters documents.
create function rag.within(places rag.reached[], scope rag.scope)
returns rag.reached[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.filters_documents(scope) then
    return places;
  end if;
  return array(
    select place
    from unnest(places) as place
    -- Offset 0 keeps this a look-up of each.
    cross join lateral (
      select from rag.documents
      where documents.org_id = place.org_id and documents.id = place.document_id
        and rag.is_within(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
      offset 0
    ) as meant);
end;
$$;

-- What stands with the seeds in the strongest of these places: the 48 entities that are worth most, each by its best
-- way. relation_types: kinds of edges that the question asks for.
create function rag.neighbours_in(places rag.reached[], seeds rag.seed[], scope rag.scope, relation_types text[])
returns rag.neighbour[]
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return array(
    with place as materialized (
      -- As columns: a bound that is computed where it is compared does not reach the index under row security.
      select strongest.*, coalesce(strongest.ordinal, 0) as from_ordinal, coalesce(strongest.ordinal, 3) as to_ordinal
      from (
        select best.*, row_number() over (partition by best.ordinal is null
          order by best.weight desc, best.document_id, best.ordinal) as turn
        from unnest(places) as best
      ) as strongest
      where strongest.turn <= 16 and exists (
        select from rag.chunks
        where chunks.org_id = strongest.org_id and chunks.document_id = strongest.document_id
          and chunks.ordinal = coalesce(strongest.ordinal, 0) and chunks.embedding_model = scope.model)
    ), named as materialized (
      select place.org_id, place.document_id, found.ordinal, found.entity, place.weight as place_weight,
        place.entity as seed,
        0.35 + 0.35 * found.weight as strength
      from place
      cross join lateral (
        select mentions.ordinal, mentions.entity, mentions.weight
        from rag.mentions
        where mentions.org_id = place.org_id and mentions.document_id = place.document_id
          and mentions.ordinal between place.from_ordinal and place.to_ordinal
        order by mentions.ordinal, mentions.weight desc
        limit 60
      ) as found
    ), related as materialized (
      select place.org_id, place.document_id, found.ordinal, found.entity, place.weight as place_weight,
        place.entity as seed,
        case when found.type = any (relation_types) then 0.75 + 0.25 * found.confidence
          else 0.5 + 0.3 * found.confidence end as strength
      from place
      cross join lateral (
        select relations.ordinal, ends.entity, relations.type, relations.confidence
        from rag.relations
        cross join lateral (values (relations.object, relations.subject), (relations.subject, relations.object))
          as ends (entity, other)
        where relations.org_id = place.org_id and relations.document_id = place.document_id
          and relations.ordinal between place.from_ordinal and place.to_ordinal
          and exists (
            select from unnest(seeds) as seed
            where seed.org_id = relations.org_id and seed.entity = ends.other)
        limit 60
      ) as found
    ), way as (
      select distinct on (ways.org_id, ways.entity) ways.org_id, ways.entity,
        ways.place_weight * ways.strength as weight, ways.seed, ways.document_id, ways.ordinal
      from (select * from named union all select * from related) as ways
      where not exists (
        select from unnest(seeds) as seed where seed.org_id = ways.org_id and seed.entity = ways.entity)
      order by ways.org_id, ways.entity, ways.place_weight * ways.strength desc, ways.document_id, ways.ordinal
    )
    select (way.org_id, way.entity, way.weight, way.seed, way.document_id, way.ordinal)::rag.neighbour
    from (select * from way order by way.weight desc, way.entity limit 48) as way
    order by way.weight desc, way.entity);
end;
$$;

-- The chunks of the places, the heaviest first, `wanted` at most: of a whole document those two of its first 32
-- that are nearest to what is asked.
create function rag.chunks_of(places rag.reached[], needle extensions.halfvec, scope rag.scope, wanted integer)
returns rag.reached[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    with place as materialized (
      select best.*
      from unnest(places) as best
      order by best.weight desc, best.document_id, best.ordinal
      limit least(2 * wanted, 200)
    ), chunk as (
      select place.org_id, place.document_id, found.ordinal, place.weight * found.share as weight
      from place
      cross join lateral (
        select near.ordinal, case row_number() over (order by near.distance, near.ordinal)
          when 1 then 1.0 else 0.85 end as share
        from (
          select chunks.ordinal, case when needle is null then 0
            else (chunks.embedding operator(extensions.<=>) needle) + 0 end as distance
          from rag.chunks
          where chunks.org_id = place.org_id and chunks.document_id = place.document_id
            and chunks.ordinal < 32 and chunks.embedding_model = scope.model
        ) as near
        order by near.distance, near.ordinal
        limit 2
      ) as found
      where place.ordinal is null
      union all
      select place.org_id, place.document_id, place.ordinal, place.weight from place where place.ordinal is not null
    )
    select (found.org_id, found.document_id, found.ordinal, 1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      null)::rag.reached
    from chunk as found
    group by found.org_id, found.document_id, found.ordinal
    order by sum(found.weight) desc, found.document_id, found.ordinal
    limit wanted);
end;
$$;

-- What is reached from the seeds in so many hops: 1 is where they are named, 2 where those are that stand with them.
-- complete: whether there was time for all of it.
create function rag.reach(seeds rag.seed[], scope rag.scope, needle extensions.halfvec, hops integer,
  relation_types text[], wanted integer, out chunks rag.reached[], out neighbours rag.neighbour[],
  out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  started constant timestamptz := clock_timestamp();
  settings rag.settings;
  first rag.reached[];
  second rag.reached[];
begin
  select * into settings from rag.settings;
  complete := true;
  neighbours := '{}';
  chunks := '{}';
  if cardinality(seeds) = 0 then
    return;
  end if;
  first := rag.within(rag.places_of(seeds, scope, 24, settings.mentions_read, 0.35), scope);
  if hops > 1 then
    complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    if complete then
      neighbours := rag.neighbours_in(first, seeds, scope, relation_types);
      complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    end if;
    if complete then
      second := rag.within(rag.places_of(array(
        select (near.org_id, near.entity, near.weight, null, null)::rag.seed from unnest(neighbours) as near),
        scope, 4, 12, 0.3), scope);
    end if;
  end if;
  chunks := rag.chunks_of(first || second, needle, scope, wanted);
end;
$$;

revoke all on function
  rag.places_of(rag.seed[], rag.scope, integer, integer, double precision),
  rag.is_within(uuid, text, text, timestamptz, rag.scope),
  rag.is_document_within(uuid, uuid, rag.scope), rag.seeds_within(rag.seed[], rag.scope, integer, integer),
  rag.within(rag.reached[], rag.scope),
  rag.neighbours_in(rag.reached[], rag.seed[], rag.scope, text[]),
  rag.chunks_of(rag.reached[], extensions.halfvec, rag.scope, integer),
  rag.reach(rag.seed[], rag.scope, extensions.halfvec, integer, text[], integer) from public, anon, service_role;
grant execute on function
  rag.places_of(rag.seed[], rag.scope, integer, integer, double precision),
  rag.is_within(uuid, text, text, timestamptz, rag.scope),
  rag.is_document_within(uuid, uuid, rag.scope), rag.seeds_within(rag.seed[], rag.scope, integer, integer),
  rag.within(rag.reached[], rag.scope),
  rag.neighbours_in(rag.reached[], rag.seed[], rag.scope, text[]),
  rag.chunks_of(rag.reached[], extensions.halfvec, rag.scope, integer),
  rag.reach(rag.seed[], rag.scope, extensions.halfvec, integer, text[], integer) to authenticated;

-- What a graph search shows besides chunks: the entities that had a part in it, the edges between them, and which
-- chunks say so. All of it is read under row security from rows of documents that the caller sees.

-- The entities, by their names as documents write them most prominently, with other spellings as aliases.
create function rag.show_entities(seeds rag.seed[], neighbours rag.neighbour[], scope rag.scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
  -- Of filtered ones more are looked at than are shown.
  read constant integer := case when unfiltered then 16 else 100 end;
begin
  return (
    with wanted as (
      select seed.org_id, seed.entity, true as is_seed, seed.weight from unnest(seeds) as seed
      union all
      select near.org_id, near.entity, false, near.weight from unnest(neighbours) as near
    ), shown as (
      select wanted.*, coalesce(text.name, title.name) as name, coalesce(text.kind, 'name') as kind,
        array(
          select distinct surface
          from unnest(text.surfaces || title.name) as surface
          where surface is not null and surface <> coalesce(text.name, title.name)
          order by surface
          limit 10) as aliases
      from wanted
      cross join lateral (
        select (array_agg(named.name order by named.weight desc, named.name))[1] as name,
          (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.kind))[1] as kind,
          array_agg(named.surface) as surfaces
        from (
          select mentions.name, mentions.kind, mentions.weight, surface
          from (
            select text_named.name, text_named.kind, text_named.said, text_named.weight
            from (
              (select mentions.document_id, mentions.name, mentions.kind, mentions.said, mentions.weight
              from rag.mentions
              where scope.collection_ids is null and mentions.org_id = wanted.org_id and mentions.entity = wanted.entity
              order by mentions.weight desc
              limit read)
              union all
              (select inside.document_id, inside.name, inside.kind, inside.said, inside.weight
              from unnest(scope.collection_ids) as home (id)
              cross join lateral (
                select mentions.document_id, mentions.name, mentions.kind, mentions.said, mentions.weight
                from rag.mentions
                where mentions.org_id = wanted.org_id and mentions.collection_id = home.id
                  and mentions.entity = wanted.entity
                order by mentions.weight desc
                limit read
              ) as inside
              order by inside.weight desc
              limit read)
            ) as text_named
            where unfiltered or rag.is_document_within(wanted.org_id, text_named.document_id, scope)
            order by text_named.weight desc
            limit 16
          ) as mentions
          left join lateral unnest(mentions.said || mentions.name) as surface on true
        ) as named
      ) as text
      left join lateral (
        select heaviest.name
        from (
          select title_named.name, title_named.weight
          from (
            (select subjects.document_id, subjects.name, subjects.weight
            from rag.subjects
            where scope.collection_ids is null and subjects.org_id = wanted.org_id and subjects.entity = wanted.entity
            order by subjects.weight desc
            limit read)
            union all
            (select inside.document_id, inside.name, inside.weight
            from unnest(scope.collection_ids) as home (id)
            cross join lateral (
              select subjects.document_id, subjects.name, subjects.weight
              from rag.subjects
              where subjects.org_id = wanted.org_id and subjects.collection_id = home.id
                and subjects.entity = wanted.entity
              order by subjects.weight desc
              limit read
            ) as inside
            order by inside.weight desc
            limit read)
          ) as title_named
          where unfiltered or rag.is_document_within(wanted.org_id, title_named.document_id, scope)
        ) as heaviest
        order by heaviest.weight desc, heaviest.name
        limit 1
      ) as title on true
      where coalesce(text.name, title.name) is not null
    )
    select coalesce(jsonb_agg(jsonb_build_object('id', replace(shown.entity, ' ', '_'), 'org_id', shown.org_id,
      'name', shown.name, 'kind', shown.kind, 'aliases', shown.aliases, 'seed', shown.is_seed,
      'weight', round(shown.weight::numeric, 4)) order by shown.is_seed desc, shown.weight desc, shown.entity), '[]')
    from shown);
end;
$$;

-- The edges between the entities that documents state, the surest first, `wanted` at most. Several chunks that say the
-- same make it surer: as if each were a chance of its own.
create function rag.edges_among(org_id uuid, entities text[], scope rag.scope, wanted integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_among.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select said.subject, said.type, said.object, least(0.99, 1 - exp(sum(ln(1 - least(0.98, said.confidence)))))
        as confidence, (array_agg(chunks.id order by said.confidence desc, chunks.id))[:5] as evidence
      from (select distinct entity from unnest(edges_among.entities) as entity) as ends
      cross join lateral (
        select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_among.org_id and relations.subject = ends.entity
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
        order by relations.confidence desc
        limit 50
      ) as said
      join rag.chunks on chunks.org_id = edges_among.org_id and chunks.document_id = said.document_id
        and chunks.ordinal = said.ordinal and chunks.embedding_model = scope.model
        and (unfiltered
          or rag.is_within(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope))
      where said.object = any (edges_among.entities)
      group by said.subject, said.type, said.object
      order by 4 desc, 1, 2, 3
      limit wanted
    ) as stated);
end;
$$;

-- Whether a document's title names an entity.
create function rag.is_about(org_id uuid, document_id uuid, entity text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.subjects
    where subjects.org_id = is_about.org_id and subjects.document_id = is_about.document_id
      and subjects.entity = is_about.entity);
$$;

-- The edges that nothing but standing together makes, where no document states more: from what the document is about
-- to what it names, else from the seed to what stands with it.
create function rag.edges_of_neighbours(neighbours rag.neighbour[], stated jsonb[])
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select jsonb_build_object('type', 'RELATED_TO',
      'from', replace(case when turned then near.entity else near.seed end, ' ', '_'),
      'to', replace(case when turned then near.seed else near.entity end, ' ', '_'), 'org_id', near.org_id,
      'confidence', round((0.5 * near.weight)::numeric, 4), 'evidence', array[chunks.id])
    from unnest(neighbours) as near
    cross join lateral (
      select rag.is_about(near.org_id, near.document_id, near.entity)
        and not rag.is_about(near.org_id, near.document_id, near.seed)
    ) as direction (turned)
    join rag.chunks on chunks.org_id = near.org_id and chunks.document_id = near.document_id
      and chunks.ordinal = near.ordinal
    where near.seed is not null and near.seed <> near.entity and not exists (
      select from unnest(stated) as edge
      where edge ->> 'org_id' = near.org_id::text
        and (edge ->> 'from', edge ->> 'to') in (
          (replace(near.seed, ' ', '_'), replace(near.entity, ' ', '_')),
          (replace(near.entity, ' ', '_'), replace(near.seed, ' ', '_'))))
    order by near.weight desc, near.entity);
end;
$$;

-- Those of the edges whose ends are both among the entities that are shown.
create function rag.edges_between(edges jsonb[], entities jsonb)
returns jsonb[]
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  shown constant jsonb := (
    select coalesce(jsonb_object_agg((entity ->> 'org_id') || ' ' || (entity ->> 'id'), true), '{}')
    from jsonb_array_elements(entities) as entity);
begin
  return array(
    select edge
    from unnest(edges) with ordinality as listed (edge, place)
    where shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'from'))
      and shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'to'))
    order by place);
end;
$$;

-- Entities, edges and evidence of what was reached: all seeds, and of their neighbours those that matter most, sixteen.
create function rag.show_graph(seeds rag.seed[], neighbours rag.neighbour[], scope rag.scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  near constant rag.neighbour[] := neighbours[:16];
  stated jsonb[] := '{}';
  edges jsonb[];
  entities jsonb;
  at_org uuid;
begin
  for at_org in select distinct seed.org_id from unnest(seeds) as seed order by 1 loop
    stated := stated || rag.edges_among(at_org, array(
      select seed.entity from unnest(seeds) as seed where seed.org_id = at_org
      union
      select other.entity from unnest(near) as other where other.org_id = at_org), scope, 32);
  end loop;
  entities := rag.show_entities(seeds, near, scope);
  edges := rag.edges_between(stated || rag.edges_of_neighbours(near, stated), entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(said.id order by said.place)
      from (
        select id, min(place) as place
        from unnest(edges) with ordinality as edge (body, place)
        cross join lateral jsonb_array_elements_text(edge.body -> 'evidence') as id
        group by id
        order by 2, 1
        limit 50
      ) as said), '[]')
    -- And of what the question names, where no edge touches it.
    || coalesce((
      select jsonb_agg(distinct named.id)
      from unnest(seeds) as seed
      cross join lateral (
        select chunks.id
        from (
          select mentions.document_id, mentions.ordinal
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.entity = seed.entity
            and (scope.collection_ids is null or mentions.collection_id = any (scope.collection_ids))
          order by mentions.weight desc
          limit 1
        ) as best
        join rag.chunks on chunks.org_id = seed.org_id and chunks.document_id = best.document_id
          and chunks.ordinal = best.ordinal and chunks.embedding_model = scope.model
        where rag.is_within(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope)
      ) as named
      where not exists (
        select from unnest(edges) as edge
        where edge ->> 'org_id' = seed.org_id::text
          and replace(seed.entity, ' ', '_') in (edge ->> 'from', edge ->> 'to'))), '[]'));
end;
$$;

revoke all on function rag.show_entities(rag.seed[], rag.neighbour[], rag.scope),
  rag.edges_among(uuid, text[], rag.scope, integer), rag.is_about(uuid, uuid, text),
  rag.edges_of_neighbours(rag.neighbour[], jsonb[]), rag.edges_between(jsonb[], jsonb),
  rag.show_graph(rag.seed[], rag.neighbour[], rag.scope) from public, anon, service_role;
grant execute on function rag.show_entities(rag.seed[], rag.neighbour[], rag.scope),
  rag.edges_among(uuid, text[], rag.scope, integer), rag.is_about(uuid, uuid, text),
  rag.edges_of_neighbours(rag.neighbour[], jsonb[]), rag.edges_between(jsonb[], jsonb),
  rag.show_graph(rag.seed[], rag.neighbour[], rag.scope) to authenticated;

-- Search by the graph: the legs of rag_search, and what the entities that a question names lead to, ordered together in
-- one call. A question that names nothing known is answered by the legs alone.

-- The hits, those that the graph reached before others, `wanted` at most: of a score the graph's share is how surely
-- the chunk was reached, the rest what the legs give it, 0 to 1 both.
create function rag.join_graph(hits rag.hit[], reached rag.reached[], share double precision, wanted integer)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with weighed as (
      select hit.*, (1 - share) * coalesce(hit.score, 0) + share * coalesce(place.weight, 0) as joined_score
      from unnest(hits) as hit
      left join unnest(reached) as place on place.org_id = hit.org_id and place.document_id = hit.document_id
        and place.ordinal = hit.ordinal
    ), best as (
      select * from weighed order by joined_score desc, chunk_id limit wanted
    )
    select array_agg((best.org_id, best.document_id, best.ordinal, best.chunk_id, best.content, best.span_start,
      best.span_end, best.similarity, best.word_score, least(1, best.joined_score))::rag.hit
      order by best.joined_score desc, best.chunk_id)
    from best);
end;
$$;

-- The hits as JSON, each with how surely the graph reached it, and whether the legs alone would not have shown it.
create function rag.show_joined(shown rag.hit[], by_legs rag.hit[], reached rag.reached[], exact boolean,
  considered integer, vector_ms real, lexical_ms real)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_agg(to_jsonb(row_shown) || jsonb_build_object('graph_score', coalesce(place.weight, 0),
      'graph_sourced', coalesce(place.weight, 0) > 0 and not exists (
        select from unnest(by_legs) as hit where hit.chunk_id = row_shown.chunk_id))), '[]')
    from rag.show(shown, exact, considered, vector_ms, lexical_ms) as row_shown
    left join lateral (
      select max(found.weight)
      from unnest(reached) as found
      where found.org_id = row_shown.org_id and found.document_id = row_shown.document_id
        and found.ordinal = row_shown.ordinal
    ) as place (weight) on true);
end;
$$;

-- Those of the reached chunks that a leg has not brought, with the score that it would have given them; by word alone
-- one without any of the words has none, and was reached all the same.
create function rag.hits_reached(reached rag.reached[], known rag.hit[], query_text text,
  needle extensions.halfvec, scope rag.scope, mode text)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  hits rag.hit[];
  scored rag.hit[];
begin
  hits := array(
    select (found.org_id, found.document_id, found.ordinal, found.id, found.content, found.span_start, found.span_end,
      case when needle is not null
        then greatest(0, least(1, 1 - (found.embedding operator(extensions.<=>) needle))) end, null, null)::rag.hit
    from unnest(reached) as place
    cross join lateral (
      select chunks.*
      from rag.chunks
      where chunks.org_id = place.org_id and chunks.document_id = place.document_id
        and chunks.ordinal = place.ordinal and chunks.embedding_model = scope.model
      offset 0
    ) as found
    where not exists (select from unnest(known) as hit where hit.chunk_id = found.id));
  if cardinality(hits) = 0 then
    return hits;
  elsif mode = 'semantic' then
    -- No word has a part in it, and none is counted.
    return array(
      select (hit.org_id, hit.document_id, hit.ordinal, hit.chunk_id, hit.content, hit.span_start, hit.span_end,
        hit.similarity, null, hit.similarity)::rag.hit
      from unnest(hits) as hit);
  end if;
  scored := rag.score(case when mode <> 'semantic' then rag.question(query_text, scope) end,
    array(select distinct (hit.org_id, hit.document_id)::rag.reference from unnest(hits) as hit),
    hits, needle, scope, mode, 'mean', 0, 0, false);
  return scored || array(
    select hit from unnest(hits) as hit
    where not exists (select from unnest(scored) as other where other.chunk_id = hit.chunk_id));
end;
$$;

-- query_text, query_vector, filters, expand_context, half_life_days and prefer as rag_search takes them. mode: graph
-- (hybrid's legs), or one of rag_search's, which the graph then enhances. hops: how far it goes, 1 or 2.
-- relation_types: the edges that the question asks for, which lead on most surely. Returns {matches, entities, edges,
-- evidence, complete, graph_ms}.
create function public.rag_graph_search(
  query_text text,
  query_vector extensions.vector default null,
  mode text default 'graph',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  hops integer default 2,
  relation_types text[] default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  legs text := case mode when 'graph' then 'hybrid' else mode end;
  needle extensions.halfvec(1536);
  scope rag.scope;
  settings rag.settings;
  found record;
  seeds rag.seed[];
  reach record;
  hits rag.hit[];
  started timestamptz;
  graph_ms real;
begin
  perform rag.check_search(query_text, query_vector, legs, expand_context, half_life_days, 'mean');
  perform rag.check_graph(query_text, top_k, hops, relation_types);
  scope := rag.scope_of(filters);
  select * into settings from rag.settings;
  prefer := nullif(prefer, '{}');
  if legs in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    legs := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  started := clock_timestamp();
  seeds := rag.seeds_within(rag.link(query_text, scope), scope, 24, settings.mentions_read);
  reach := rag.reach(seeds, scope, needle, hops, relation_types, pool);
  graph_ms := rag.milliseconds_since(started);
  -- Both legs score what was reached among their own candidates, as if they had brought it.
  found := rag.find(needle, query_text, scope, legs, 'mean', pool, top_k, array(
    select (place.org_id, place.document_id, place.ordinal, null, null, null, null, null, null, null)::rag.hit
    from unnest(reach.chunks) as place
    where legs = 'hybrid'));
  hits := found.hits;
  if legs <> 'hybrid' and cardinality(reach.chunks) > 0 then
    hits := hits || rag.hits_reached(reach.chunks, hits, query_text, needle, scope, legs);
  end if;
  if cardinality(reach.chunks) > 0 then
    hits := rag.join_graph(hits, reach.chunks, settings.graph_share, pool);
  end if;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  if prefer is not null then
    hits := rag.prefer(hits, prefer);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return rag.show_graph(seeds, reach.neighbours, scope) || jsonb_build_object('complete', reach.complete,
    'graph_ms', graph_ms, 'matches', rag.show_joined(hits, (found.hits)[:top_k], reach.chunks, found.exact,
      found.considered, found.vector_ms, found.lexical_ms));
end;
$$;

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_graph(query_text text, top_k integer, hops integer, relation_types text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_top_k(top_k);
  if coalesce(query_text, '') = '' then
    raise exception 'the graph needs query_text' using errcode = 'PT400', detail = 'missing_text';
  elsif hops is null or hops not between 1 and 2 then
    raise exception 'hops must be 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  elsif cardinality(relation_types) > 50 then
    raise exception 'at most 50 types of relations' using errcode = 'PT400', detail = 'invalid_relation_types';
  end if;
end;
$$;

revoke all on function rag.join_graph(rag.hit[], rag.reached[], double precision, integer),
  rag.show_joined(rag.hit[], rag.hit[], rag.reached[], boolean, integer, real, real),
  rag.hits_reached(rag.reached[], rag.hit[], text, extensions.halfvec, rag.scope, text),
  rag.check_graph(text, integer, integer, text[]),
  public.rag_graph_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text[], integer,
    text[]) from public, anon, service_role;
grant execute on function rag.join_graph(rag.hit[], rag.reached[], double precision, integer),
  rag.show_joined(rag.hit[], rag.hit[], rag.reached[], boolean, integer, real, real),
  rag.hits_reached(rag.reached[], rag.hit[], text, extensions.halfvec, rag.scope, text),
  rag.check_graph(text, integer, integer, text[]),
  public.rag_graph_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text[], integer,
    text[]) to authenticated;

-- The graph around documents: what they name, how that is related, and, going on from there, what other documents that
-- the caller sees say of it. For /v1/contents.

-- The entities that a document names, those that matter most in it; `wanted` at most, its subjects first, which weigh
-- more than whatever it names.
create function rag.entities_of(org_id uuid, document_id uuid, wanted integer)
returns rag.seed[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select (entities_of.org_id, named.entity, max(named.weight), null, null)::rag.seed
    from (
      (select subjects.entity, subjects.weight
      from rag.subjects
      where subjects.org_id = entities_of.org_id and subjects.document_id = entities_of.document_id
        and subjects.weight >= 0.9)
      union all
      (select mentions.entity, 0.8 * mentions.weight
      from rag.mentions
      where mentions.org_id = entities_of.org_id and mentions.document_id = entities_of.document_id
      order by mentions.ordinal, mentions.weight desc
      limit 1000)
    ) as named
    group by named.entity
    order by max(named.weight) desc, named.entity
    limit wanted);
end;
$$;

-- The edges that chunks state which begin or end at one of the entities; only those of a document, unless that is
-- null, a thousand statements at most.
create function rag.edges_at(org_id uuid, entities text[], scope rag.scope, document_id uuid, wanted integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_at.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select said.subject, said.type, said.object,
        least(0.99, 1 - exp(sum(ln(1 - least(0.98, said.confidence))))) as confidence,
        (array_agg(chunks.id order by said.confidence desc, chunks.id))[:5] as evidence
      from (
        (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_at.org_id and relations.document_id = edges_at.document_id
          and (relations.subject = any (edges_at.entities) or relations.object = any (edges_at.entities))
        order by relations.ordinal
        limit 1000)
        union all
        -- An edge between two of them is found at both ends.
        select distinct found.*
        from (
          select distinct entity from unnest(edges_at.entities) as entity where edges_at.document_id is null
        ) as ends
        cross join lateral (
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_at.org_id and relations.subject = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          union all
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_at.org_id and relations.object = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          offset 0
        ) as found
      ) as said
      join rag.chunks on chunks.org_id = edges_at.org_id and chunks.document_id = said.document_id
        and chunks.ordinal = said.ordinal
      group by said.subject, said.type, said.object
      order by 4 desc, 1, 2, 3
      limit wanted
    ) as stated);
end;
$$;

-- What a document names, and what is stated of that: what is only named together is not told here.
create function rag.graph_of_document(org_id uuid, document_id uuid, scope rag.scope, hops integer)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  seeds rag.seed[] := rag.entities_of(org_id, document_id, 32);
  reached text[] := array(select seed.entity from unnest(seeds) as seed);
  edges jsonb[] := rag.edges_at(org_id, reached, scope, case when hops = 0 then document_id end, 64);
  further rag.neighbour[] := '{}';
  entities jsonb;
begin
  for hop in 1..greatest(1, hops) loop
    reached := reached || array(
      select distinct ends.entity
      from unnest(edges) as edge
      cross join lateral (values (edge ->> 'from'), (edge ->> 'to')) as named (id)
      cross join lateral (select replace(named.id, '_', ' ')) as ends (entity)
      where ends.entity <> all (reached));
    exit when hop >= hops;
    edges := rag.edges_at(org_id, reached[:128], scope, null, 128);
  end loop;
  further := array(
    select (org_id, ends.entity, 0.1, null, null, null)::rag.neighbour
    from unnest(reached) as ends (entity)
    where not exists (select from unnest(seeds) as seed where seed.entity = ends.entity));
  entities := rag.show_entities(seeds, further, scope);
  edges := rag.edges_between(edges, entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(distinct id)
      from unnest(edges) as edge
      cross join lateral jsonb_array_elements_text(edge -> 'evidence') as id), '[]'));
end;
$$;

-- The graph of each of the documents that the caller sees in that org, or in that collection of it: {document id:
-- {entities, edges, evidence}}. hops: 0 is what the document itself says, 1 what others say of what it names as well, 2
-- what they say of that. At most twenty documents.
create function public.rag_graph_of(org_id uuid, document_ids uuid[], collection_id uuid default null,
  hops integer default 1)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  scope rag.scope;
begin
  if not rag.has_scope('documents:read', 'retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope documents:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif document_ids is null or cardinality(document_ids) > 20 then
    raise exception 'document_ids must be at most 20' using errcode = 'PT400', detail = 'invalid_ids';
  elsif hops is null or hops not between 0 and 2 then
    raise exception 'hops must be 0, 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  end if;
  scope.org_ids := array[org_id];
  scope.collection_ids := case when collection_id is not null then array[collection_id] end;
  return coalesce((
    select jsonb_object_agg(present.id, rag.graph_of_document(org_id, present.id, scope, hops))
    from rag.documents as present
    where present.org_id = rag_graph_of.org_id and present.id = any (document_ids)
      and (collection_id is null or present.collection_id = rag_graph_of.collection_id)), '{}');
end;
$$;

revoke all on function rag.entities_of(uuid, uuid, integer), rag.edges_at(uuid, text[], rag.scope, uuid, integer),
  rag.graph_of_document(uuid, uuid, rag.scope, integer), public.rag_graph_of(uuid, uuid[], uuid, integer)
  from public, anon, service_role;
grant execute on function rag.entities_of(uuid, uuid, integer), rag.edges_at(uuid, text[], rag.scope, uuid, integer),
  rag.graph_of_document(uuid, uuid, rag.scope, integer), public.rag_graph_of(uuid, uuid[], uuid, integer)
  to authenticated;

-- Documents that were there before are named by their titles from now on; of their texts, whoever asks for it
-- (rag_build_graph) has the worker read them.
insert into rag.subjects (org_id, document_id, entity, collection_id, owner_id, name, weight, sound, ending)
select documents.org_id, documents.id, found.entity, documents.collection_id, documents.owner_id, found.name, found.weight,
  heard.sound, reverse(heard.sound)
from rag.documents
cross join lateral rag.names_of_title(documents.title) as found
cross join lateral (select rag.sound(found.entity)) as heard (sound)
where rag.is_graphed(documents.org_id, documents.collection_id)
on conflict do nothing;

insert into rag.extractions (org_id, document_id, collection_id, owner_id, level)
select documents.org_id, documents.id, documents.collection_id, documents.owner_id, 0
from rag.documents
where documents.status = 'completed' and rag.is_graphed(documents.org_id, documents.collection_id)
on conflict do nothing;

-- Reading documents for names, by the worker (sql/72).

-- Documents that nobody has read for names yet, or that a model is to read as well: what the worker does about them
-- (42_extractions.sql). It claims them under its own role, and reads each in the name of its user, with a token that
-- names the lease (rag.held_lease): a part of its chunks at a time, each part kept as soon as it is read. So whatever
-- dies, and wherever, another goes on behind the last part; and who brings the document anew, retitles it or deletes it
-- takes the lease away. A document of a collection that left the graph is not read: what was read of it goes.

-- rag_claim_extractions: which orgs have some to read, and of each what is due.
create index extractions_due on rag.extractions (level, org_id, due_at)
  where level < 2 and user_id is not null and due_at is not null;

-- rag.held_extraction
create index extractions_by_lease on rag.extractions (org_id, lease) where lease is not null;

-- rag.read_collection
create index extractions_by_collection on rag.extractions (org_id, collection_id);

-- No user's own token names a lease: only the worker's for one document does.
create policy "documents are read in the name of who asks" on rag.extractions
  as restrictive for all to authenticated
  using (true)
  with check (user_id = (select auth.uid()) and (lease is null or lease = (select rag.held_lease())));

create policy "the worker claims what is to be read" on rag.extractions
  for select to rag_worker using (true);

create policy "the worker leases what is to be read" on rag.extractions
  for update to rag_worker using (true) with check (lease is not null or due_at is null);

grant select (org_id, document_id, owner_id, user_id, level, attempts, due_at, lease, error_code, error_message)
  on rag.extractions to rag_worker;
grant update (attempts, due_at, lease, error_code, error_message, updated_at) on rag.extractions to rag_worker;

-- Documents that are to be read, leased: by the rules, and with_model those too that only the rules have read. Of every
-- org as many as of any other, those first that wait longest. A lease that has run out is nobody's: its document is
-- claimed again, alone, since it may be what its worker died of. One that nobody ever got on with, sixteen times, is
-- given up. as_admin: it is read for somebody else, as only an admin may.
create function public.rag_claim_extractions(
  wanted integer default 1, lease_seconds integer default 60, with_model boolean default false
)
returns table (org_id uuid, document_id uuid, user_id uuid, as_admin boolean, lease uuid, attempts integer)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  below constant smallint := case when with_model then 2 else 1 end;
begin
  if wanted is null or wanted not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'so many documents, or so long, nobody may have' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  return query
  with recursive busy (level, org_id) as (
    -- The next org with some, by the index: there may be many documents and few orgs.
    (select extractions.level, extractions.org_id
    from rag.extractions
    where extractions.level < 2 and extractions.user_id is not null and extractions.due_at is not null
      and extractions.level < below
    order by extractions.level, extractions.org_id
    limit 1)
    union all
    select found.level, found.org_id
    from busy
    cross join lateral (
      select extractions.level, extractions.org_id
      from rag.extractions
      where extractions.level < 2 and extractions.user_id is not null and extractions.due_at is not null
        and extractions.level < below and (extractions.level, extractions.org_id) > (busy.level, busy.org_id)
      order by extractions.level, extractions.org_id
      limit 1
    ) as found
  ), due as materialized (
    select found.*, row_number() over (
      partition by found.org_id order by found.level, found.due_at, found.document_id) as turn
    from busy
    cross join lateral (
      select extractions.org_id, extractions.document_id, extractions.level, extractions.due_at,
        extractions.lease is not null as is_left_behind
      from rag.extractions
      where extractions.level < 2 and extractions.user_id is not null and extractions.level = busy.level
        and extractions.org_id = busy.org_id and extractions.due_at <= clock_timestamp()
      order by extractions.due_at
      limit wanted
    ) as found
  ), locked as materialized (
    select extractions.org_id, extractions.document_id
    from (
      select due.*
      from due
      where due.is_left_behind or not exists (select from due as dead where dead.is_left_behind)
      order by due.turn, due.due_at, due.document_id
      limit 4 * wanted
    ) as due
    cross join lateral (
      select extractions.org_id, extractions.document_id
      from rag.extractions
      where extractions.org_id = due.org_id and extractions.document_id = due.document_id
        and extractions.due_at <= clock_timestamp()
      for update skip locked
    ) as extractions
    limit case when exists (select from due where due.is_left_behind) then 1 else wanted end
  ), claimed as (
    update rag.extractions
    set attempts = case when ended.is_given_up then extractions.attempts else extractions.attempts + 1 end,
      lease = case when not ended.is_given_up then gen_random_uuid() end,
      due_at = case when not ended.is_given_up then clock_timestamp() + make_interval(secs => lease_seconds) end,
      error_code = case when ended.is_given_up then 'reading_failed' else extractions.error_code end,
      error_message = case when ended.is_given_up then 'Nobody could finish reading this document.'
        else extractions.error_message end,
      updated_at = clock_timestamp()
    from locked
    join rag.extractions as present on present.org_id = locked.org_id and present.document_id = locked.document_id
    cross join lateral (select present.lease is not null and present.attempts >= 16) as ended (is_given_up)
    where extractions.org_id = locked.org_id and extractions.document_id = locked.document_id
    returning extractions.org_id, extractions.document_id, extractions.owner_id, extractions.user_id,
      extractions.lease, extractions.attempts
  )
  select claimed.org_id, claimed.document_id, claimed.user_id, coalesce(claimed.owner_id <> claimed.user_id, false),
    claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.document_id = claimed.document_id
  where claimed.lease is not null
  order by due.turn, due.due_at, due.document_id;
end;
$$;

-- The reading of the token's lease, locked; PT409 when the lease is lost: the document was claimed again, brought anew,
-- retitled or deleted, or it is not the user's to see any more.
create function rag.held_extraction()
returns rag.extractions
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held rag.extractions;
begin
  -- The document first, as everybody who deletes or replaces one locks it.
  perform from rag.documents
  join rag.extractions on extractions.org_id = documents.org_id and extractions.document_id = documents.id
  where extractions.org_id = any (array(select rag.current_org_ids())) and extractions.lease = rag.held_lease()
  for no key update of documents;
  select * into held
  from rag.extractions
  where org_id = any (array(select rag.current_org_ids())) and lease = rag.held_lease()
  for update;
  if not found then
    raise exception 'the lease of this reading is lost' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return held;
end;
$$;

-- What there is to read next: who has read the document before (level), its title, and its chunks from `first` on,
-- `most` of them: {content, names}, names being those that are known of it, {name, said}. Nothing for a document whose
-- collection left the graph: then nothing of it is left there either.
create function public.rag_open_extraction(most integer default 100)
returns table (document_id uuid, level smallint, title text, first integer, chunks jsonb)
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  held constant rag.extractions := rag.held_extraction();
begin
  if most is null or most not between 1 and 1000 then
    raise exception 'most must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_most';
  elsif not rag.is_graphed(held.org_id, held.collection_id) then
    perform rag.forget_names(held.org_id, held.document_id);
    return;
  end if;
  if held.level = 0 and held.next_ordinal = 0 then
    perform rag.add_subjects(documents)
    from rag.documents
    where documents.org_id = held.org_id and documents.id = held.document_id;
  end if;
  return query
  select held.document_id, held.level, documents.title, held.next_ordinal, coalesce(part.chunks, '[]')
  from rag.documents
  cross join lateral (
    select jsonb_agg(jsonb_build_object('content', stored.content, 'names', known.names)
      order by stored.ordinal) as chunks
    from rag.chunks as stored
    cross join lateral (
      select coalesce(jsonb_agg(jsonb_build_object('name', mentions.name, 'said', mentions.said)), '[]') as names
      from rag.mentions
      where mentions.org_id = stored.org_id and mentions.document_id = stored.document_id
        and mentions.ordinal = stored.ordinal
    ) as known
    where stored.org_id = held.org_id and stored.document_id = held.document_id
      and stored.ordinal >= held.next_ordinal and stored.ordinal < held.next_ordinal + most
  ) as part
  where documents.org_id = held.org_id and documents.id = held.document_id;
end;
$$;

-- What the chunks from `first` on name and relate (names and relations, as rag_put_document takes them), in the place
-- of what was known of them; a chunk without names keeps what it has. model: which one has read them; none: the rules.
-- What it cost, in tokens. code, message: why one of them could not be read. Whether there are more: the lease then
-- lasts so much longer, and ends otherwise.
create function public.rag_keep_extraction(
  first integer, chunks jsonb, model text default null, prompt_tokens bigint default 0,
  completion_tokens bigint default 0, code text default null, message text default null,
  lease_seconds integer default 300
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  held constant rag.extractions := rag.held_extraction();
  behind constant integer := first + jsonb_array_length(chunks);
  read constant integer[] := array(
    select (first + item.place - 1)::integer
    from jsonb_array_elements(chunks) with ordinality as item (body, place)
    where jsonb_typeof(item.body -> 'names') = 'array');
  is_more constant boolean := exists (
    select from rag.chunks as stored
    where stored.org_id = held.org_id and stored.document_id = held.document_id and stored.ordinal >= behind);
begin
  if first is distinct from held.next_ordinal then
    raise exception 'other chunks are next' using errcode = 'PT409', detail = 'out_of_turn';
  end if;
  delete from rag.relations
  where relations.org_id = held.org_id and relations.document_id = held.document_id
    and relations.ordinal = any (read);
  delete from rag.mentions
  where mentions.org_id = held.org_id and mentions.document_id = held.document_id and mentions.ordinal = any (read);
  perform rag.insert_names(held.org_id, held.document_id, chunks, first);
  if not is_more then
    perform rag.forget_loose_relations(held.org_id, held.document_id);
  end if;
  update rag.extractions as known
  set next_ordinal = case when is_more then behind else 0 end,
    level = case when is_more then held.level when model is null then 1 else 2 end,
    model = coalesce(rag_keep_extraction.model, held.model),
    prompt_tokens = held.prompt_tokens + rag_keep_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_keep_extraction.completion_tokens,
    lease = case when is_more then held.lease end,
    due_at = case when is_more then clock_timestamp() + make_interval(secs => lease_seconds) else clock_timestamp() end,
    -- It went on.
    attempts = 0,
    -- What it had to wait for is over; what could not be read stays unread.
    error_code = coalesce(code, case when held.error_code = 'unreadable_reply' then held.error_code end),
    error_message = coalesce(message, case when held.error_code = 'unreadable_reply' then held.error_message end),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
  return is_more;
end;
$$;

-- It did not work, and why; what it cost all the same. retry_seconds: after which to try again; null: never, and the
-- row says so. Without a code nothing is wrong: it is left for another turn.
create function public.rag_fail_extraction(
  code text default null, message text default null, retry_seconds integer default null,
  prompt_tokens bigint default 0, completion_tokens bigint default 0
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  held constant rag.extractions := rag.held_extraction();
begin
  update rag.extractions as known
  set lease = null, attempts = case when code is null then greatest(held.attempts - 1, 0) else held.attempts end,
    due_at = case when code is null then clock_timestamp()
      else clock_timestamp() + make_interval(secs => retry_seconds) end,
    prompt_tokens = held.prompt_tokens + rag_fail_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_fail_extraction.completion_tokens,
    error_code = coalesce(code, held.error_code), error_message = coalesce(message, held.error_message),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
end;
$$;

-- Have a collection's documents read in the caller's name, as far as the caller sees them: those that nobody has asked
-- for yet, and those that were given up; `again`: all of them, from the beginning. How many. PT409 for a collection
-- that is not in the graph.
create function public.rag_build_graph(collection_id uuid, again boolean default false)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  home constant rag.collections := rag.collection_of(collection_id);
begin
  if not rag.has_scope('documents:write') then
    raise exception 'this key may not write documents' using errcode = 'PT403', detail = 'missing_scope';
  elsif not rag.is_graphed(home.org_id, home.id) then
    raise exception 'the collection''s documents are kept out of the graph'
      using errcode = 'PT409', detail = 'graph_off';
  end if;
  return rag.read_collection(home, coalesce(again, false));
end;
$$;

create function rag.read_collection(home rag.collections, again boolean)
returns bigint
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  asked bigint;
begin
  -- The documents first, as everybody locks them who writes one.
  perform from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  order by documents.id
  for no key update;
  insert into rag.extractions as known (org_id, document_id, collection_id, owner_id, user_id, level)
  select documents.org_id, documents.id, documents.collection_id, documents.owner_id, auth.uid(), 0
  from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  -- In one order, so that of two who ask for the same one waits for the other.
  order by documents.id
  on conflict (org_id, document_id) do update
  set level = case when again then 0 else known.level end,
    next_ordinal = case when again then 0 else known.next_ordinal end,
    user_id = excluded.user_id, attempts = 0, due_at = now(), lease = null, error_code = null, error_message = null,
    updated_at = now()
  where again or known.user_id is null or known.due_at is null;
  get diagnostics asked = row_count;
  return asked;
end;
$$;

-- A collection came into the graph or left it, as far as the caller sees its documents. It is the worker that reads
-- them, and that forgets what was read; of a few documents it is forgotten at once.
create function rag.follow_switch(home rag.collections, was_graphed boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  at_once constant integer := 200;
  is_graphed constant boolean := rag.is_graphed(home.org_id, home.id);
begin
  if not rag.has_scope('documents:write') then
    if is_graphed is distinct from was_graphed then
      raise exception 'this key may not write documents' using errcode = 'PT403', detail = 'missing_scope';
    end if;
    return;
  end if;
  perform rag.read_collection(home, not is_graphed);
  if not is_graphed then
    perform rag.forget_names(few.org_id, few.document_id)
    from (
      select extractions.org_id, extractions.document_id
      from rag.extractions
      where extractions.org_id = home.org_id and extractions.collection_id = home.id
      limit at_once
    ) as few;
  end if;
end;
$$;

-- Take a document out of the graph.
create function rag.forget_names(org_id uuid, document_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.relations
  where relations.org_id = forget_names.org_id and relations.document_id = forget_names.document_id;
  delete from rag.mentions
  where mentions.org_id = forget_names.org_id and mentions.document_id = forget_names.document_id;
  delete from rag.subjects
  where subjects.org_id = forget_names.org_id and subjects.document_id = forget_names.document_id;
  delete from rag.extractions
  where extractions.org_id = forget_names.org_id and extractions.document_id = forget_names.document_id;
$$;

revoke all on function public.rag_claim_extractions(integer, integer, boolean)
  from public, anon, authenticated, service_role;
grant execute on function public.rag_claim_extractions(integer, integer, boolean) to rag_worker;

revoke all on function rag.held_extraction(), public.rag_open_extraction(integer),
  public.rag_keep_extraction(integer, jsonb, text, bigint, bigint, text, text, integer),
  public.rag_fail_extraction(text, text, integer, bigint, bigint), public.rag_build_graph(uuid, boolean),
  rag.read_collection(rag.collections, boolean), rag.follow_switch(rag.collections, boolean),
  rag.forget_names(uuid, uuid)
  from public, anon, service_role;
grant execute on function rag.held_extraction(), public.rag_open_extraction(integer),
  public.rag_keep_extraction(integer, jsonb, text, bigint, bigint, text, text, integer),
  public.rag_fail_extraction(text, text, integer, bigint, bigint), public.rag_build_graph(uuid, boolean),
  rag.read_collection(rag.collections, boolean), rag.follow_switch(rag.collections, boolean),
  rag.forget_names(uuid, uuid)
  to authenticated;

-- Collections join the graph and leave it.
create or replace function public.rag_update_collection(
  collection_id uuid, name text default null, description text default null, metadata jsonb default null,
  config jsonb default null
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  present rag.collections := rag.collection_of(collection_id);
  was_graphed constant boolean := rag.is_graphed(present.org_id, present.id);
  changed rag.collections;
begin
  perform rag.check_name(name);
  if config ? 'embedding_model'
    and config -> 'embedding_model' is distinct from present.config -> 'embedding_model'
    and (rag.shown(present)).document_count > 0
  then
    raise exception 'its documents are embedded by another model'
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
    raise exception 'there is a collection of that name already'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end;
  if changed.id is null then
    raise exception 'this key may not change collections' using errcode = 'PT403', detail = 'missing_scope';
  end if;
  if config ? 'enable_knowledge_graph' then
    perform rag.follow_switch(changed, was_graphed);
  end if;
  return next rag.shown(changed);
end;
$$;
