-- Functions that the worker calls for extractions. It claims them under its own role, and processes each as its user,
-- with a token that names the lease (rag.lease_of_token), some chunks at a time; each part is stored at once, so after
-- a crash the next attempt continues behind the last part. Replacing, retitling or deleting the document revokes the
-- lease. For a document whose collection left the graph, the extracted rows are deleted.

-- rag_claim_extractions: which orgs have some to read, and of each what is due.
create index extractions_due on rag.extractions (level, org_id, due_at)
  where level < 2 and user_id is not null and due_at is not null;

-- rag.leased_extraction
create index extractions_by_lease on rag.extractions (org_id, lease) where lease is not null;

-- rag.enqueue_collection
create index extractions_by_collection on rag.extractions (org_id, collection_id);

-- No user's own token names a lease: only the worker's for one document does.
create policy "documents are read in the name of who asks" on rag.extractions
  as restrictive for all to authenticated
  using (true)
  with check (user_id = (select auth.uid()) and (lease is null or lease = (select rag.lease_of_token())));

create policy "the worker claims what is to be read" on rag.extractions
  for select to rag_worker using (true);

create policy "the worker leases what is to be read" on rag.extractions
  for update to rag_worker using (true) with check (lease is not null or due_at is null);

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

comment on function public.rag_claim_extractions is
  'Documents that are to be read, leased: by the rules, and with_model those too that only the rules have read. Of '
  'every org as many as of any other, those first that wait longest. A lease that has run out is nobody''s: its '
  'document is claimed again, alone, since it may be what its worker died of. One that nobody ever got on with, '
  'sixteen times, is given up. as_admin: it is read for somebody else, as only an admin may.';

create function rag.leased_extraction(with_document boolean default true)
returns rag.extractions
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held rag.extractions;
begin
  if with_document then
    -- The document first: every transaction that deletes or replaces one locks it before its extraction.
    perform from rag.documents
    join rag.extractions on extractions.org_id = documents.org_id and extractions.document_id = documents.id
    where extractions.org_id = any (array(select rag.current_org_ids())) and extractions.lease = rag.lease_of_token()
    for no key update of documents;
  end if;
  select * into held
  from rag.extractions
  where org_id = any (array(select rag.current_org_ids())) and lease = rag.lease_of_token()
  for update;
  if not found then
    raise exception 'the lease of this reading is lost' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return held;
end;
$$;

comment on function rag.leased_extraction is
  'The extraction of the token''s lease, locked; PT409 when the lease is lost: the document was claimed again, '
  'replaced, retitled or deleted, or the user may no longer see it. with_document: the document is locked too.';

create function public.rag_open_extraction(most integer default 100)
returns table (document_id uuid, level smallint, title text, first integer, chunks jsonb)
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  held constant rag.extractions := rag.leased_extraction();
begin
  if most is null or most not between 1 and 1000 then
    raise exception 'most must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_most';
  elsif not rag.is_in_graph(held.org_id, held.collection_id) then
    perform rag.delete_graph_of_document(held.org_id, held.document_id);
    return;
  end if;
  if held.level = 0 and held.next_ordinal = 0 then
    perform rag.add_title_entities(documents)
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

comment on function public.rag_open_extraction is
  'What there is to read next: who has read the document before (level), its title, and its chunks from `first` on, '
  '`most` of them: {content, names}, names being those that are known of it, {name, said}. Nothing for a document '
  'whose collection left the graph: then nothing of it is left there either.';

create function public.rag_store_extraction(
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
  is_admitted constant boolean := rag.begin_write();
  held constant rag.extractions := rag.leased_extraction();
  behind constant integer := first + jsonb_array_length(chunks);
  read constant integer[] := array(
    select (first + item.place - 1)::integer
    from jsonb_array_elements(chunks) with ordinality as item (body, place)
    where jsonb_typeof(item.body -> 'names') = 'array');
  is_more constant boolean := exists (
    select from rag.chunks as stored
    where stored.org_id = held.org_id and stored.document_id = held.document_id and stored.ordinal >= behind);
begin
  perform rag.check_json('chunks', chunks);
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
    perform rag.delete_dangling_relations(held.org_id, held.document_id);
  end if;
  update rag.extractions as known
  set next_ordinal = case when is_more then behind else 0 end,
    level = case when is_more then held.level when model is null then 1 else 2 end,
    model = coalesce(rag_store_extraction.model, held.model),
    prompt_tokens = held.prompt_tokens + rag_store_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_store_extraction.completion_tokens,
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

comment on function public.rag_store_extraction is
  'What the chunks from `first` on name and relate (names and relations, as rag_put_document takes them), in the '
  'place of what was known of them; a chunk without names keeps what it has. model: which one has read them; none: '
  'the rules. What it cost, in tokens. code, message: why one of them could not be read. Whether there are more: '
  'the lease then lasts so much longer, and ends otherwise.';

create function public.rag_fail_extraction(
  code text default null, message text default null, retry_seconds integer default null,
  prompt_tokens bigint default 0, completion_tokens bigint default 0
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  held constant rag.extractions := rag.leased_extraction(with_document => false);
begin
  update rag.extractions as known
  set lease = null, attempts = case when code is null then greatest(held.attempts - 1, 0) else held.attempts end,
    due_at = clock_timestamp() + make_interval(secs => case when code is null then coalesce(retry_seconds, 0)
      else retry_seconds end),
    prompt_tokens = held.prompt_tokens + rag_fail_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_fail_extraction.completion_tokens,
    error_code = coalesce(code, held.error_code), error_message = coalesce(message, held.error_message),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
end;
$$;

comment on function public.rag_fail_extraction is
  'It did not work, and why; what it cost all the same. retry_seconds: after which to try again; null: never, and '
  'the row has the error. Without a code there is no error: the extraction is due again, and the attempt does not '
  'count. The document is not locked: its lock may be the lock that the extraction could not get.';

create function public.rag_build_graph(collection_id uuid, again boolean default false)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(collection_id);
begin
  perform rag.require_scope('documents:write');
  if not rag.is_in_graph(home.org_id, home.id) then
    raise exception 'the collection''s documents are kept out of the graph'
      using errcode = 'PT409', detail = 'graph_off';
  end if;
  return rag.enqueue_collection(home, coalesce(again, false));
exception when lock_not_available then
  perform rag.raise_locked();
end;
$$;

comment on function public.rag_build_graph is
  'Have a collection''s documents read in the caller''s name, as far as the caller sees them: those that nobody has '
  'asked for yet, and those that were given up; `again`: all of them, from the beginning. How many. PT409 for a '
  'collection that is not in the graph.';

create function rag.enqueue_collection(home rag.collections, again boolean)
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

comment on function rag.enqueue_collection is
  'Enqueue the extraction of all documents of a collection that the caller sees; their number.';

create function rag.on_graph_setting_changed(home rag.collections, was_graphed boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  at_once constant integer := 200;
  is_graphed constant boolean := rag.is_in_graph(home.org_id, home.id);
begin
  if not rag.has_scope('documents:write') then
    if is_graphed is distinct from was_graphed then
      raise exception 'this key may not write documents' using errcode = 'PT403', detail = 'missing_scope';
    end if;
    return;
  end if;
  perform rag.enqueue_collection(home, not is_graphed);
  if not is_graphed then
    perform rag.delete_graph_of_document(few.org_id, few.document_id)
    from (
      select extractions.org_id, extractions.document_id
      from rag.extractions
      where extractions.org_id = home.org_id and extractions.collection_id = home.id
      limit at_once
    ) as few;
  end if;
end;
$$;

comment on function rag.on_graph_setting_changed is
  'A collection came into the graph or left it, as far as the caller sees its documents. It is the worker that '
  'reads them, and that forgets what was read; of a few documents it is forgotten at once.';

create function rag.delete_graph_of_document(org_id uuid, document_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.relations
  where relations.org_id = delete_graph_of_document.org_id
    and relations.document_id = delete_graph_of_document.document_id;
  delete from rag.mentions
  where mentions.org_id = delete_graph_of_document.org_id
    and mentions.document_id = delete_graph_of_document.document_id;
  delete from rag.subjects
  where subjects.org_id = delete_graph_of_document.org_id
    and subjects.document_id = delete_graph_of_document.document_id;
  delete from rag.extractions
  where extractions.org_id = delete_graph_of_document.org_id
    and extractions.document_id = delete_graph_of_document.document_id;
$$;

comment on function rag.delete_graph_of_document is 'Take a document out of the graph.';
