-- Review of recorded requests: their users rate the answers; the org's admins list, summarize and label them.

create function public.rag_rate_record(record_id text, rating text default null, reason text default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.request_records := rag.get_record(record_id);
begin
  if present.owner_id <> rag.current_user_id() then
    raise exception 'Only the user who asked may rate an answer.' using errcode = 'PT403', detail = 'asker_required';
  elsif rating not in ('up', 'down') then
    raise exception 'rating must be up, down or null' using errcode = 'PT400', detail = 'invalid_rating';
  elsif length(reason) > 2000 then
    raise exception 'reason must have at most 2,000 characters' using errcode = 'PT400', detail = 'invalid_reason';
  end if;
  update rag.request_records as record
  set rating = rag_rate_record.rating,
    reason = case when rag_rate_record.rating is not null then rag_rate_record.reason end
  where record.org_id = present.org_id and record.id = present.id;
end;
$$;

comment on function public.rag_rate_record is
  'Rate the answer of one''s own request up or down, with an optional reason; null removes the rating. PT403 for the '
  'request of another user.';

create function public.rag_label_record(record_id text, verdict text default null, document_ids uuid[] default '{}')
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.request_records := rag.get_record(record_id);
begin
  if present.org_id not in (select rag.admin_org_ids()) then
    raise exception 'Only admins of the org may label a record. An API key also needs the scope admin.'
      using errcode = 'PT403', detail = 'admin_required';
  elsif verdict not in ('right', 'wrong') then
    raise exception 'verdict must be right, wrong or null' using errcode = 'PT400', detail = 'invalid_verdict';
  elsif document_ids is null or cardinality(document_ids) > 20 or (verdict is null and document_ids <> '{}') then
    raise exception 'document_ids must be at most 20 ids, and none without a verdict'
      using errcode = 'PT400', detail = 'invalid_ids';
  elsif exists (
    select from unnest(document_ids) as named (id)
    where not exists (
      select from rag.documents where documents.org_id = present.org_id and documents.id = named.id))
  then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  update rag.request_records as record
  set verdict = rag_label_record.verdict, document_ids = rag_label_record.document_ids
  where record.org_id = present.org_id and record.id = present.id;
end;
$$;

comment on function public.rag_label_record is
  'Label a record as an admin of its org: whether the answer, or the refusal, was right, and the documents that answer '
  'the question; null removes the label. PT403 for others; PT404 for a document that the caller does not see.';

create function public.rag_list_records(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  answered boolean default null, rating text default null, labelled boolean default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.check_page("limit", "offset", 'desc', sort_by, array['created_at', 'milliseconds']);
  return (
    with listed as not materialized (
      select present.id, present.request_id, present.org_id, present.owner_id, present.function, present.question,
        present.confidence, present.answer is not null as is_answered, present.rating, present.reason,
        present.verdict, present.document_ids, present.milliseconds, present.prompt_tokens,
        present.completion_tokens, present.created_at
      from rag.request_records as present
      where present.org_id = any (own)
        and (rag_list_records.answered is null or (present.answer is not null) = rag_list_records.answered)
        and (rag_list_records.rating is null or present.rating = rag_list_records.rating)
        and (rag_list_records.labelled is null or (present.verdict is not null) = rag_list_records.labelled)
    ), page as (
      select listed.*, row_number() over (
        order by case when rag_list_records.sort_by = 'milliseconds' then listed.milliseconds end desc,
          listed.created_at desc, listed.id) as position
      from listed
      order by position
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'records', coalesce(jsonb_agg(to_jsonb(page) - 'position' order by page.position), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_records is
  '{"total", "records": [...]}: a page of the records of the orgs that the caller administers, the latest or, by '
  'milliseconds, the slowest first, without answers, prompts and passages. answered, rating and labelled filter them. '
  'PT403 for a caller who administers no org.';

create function public.rag_summarize_records(days integer default 30)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  if days is null or days not between 1 and 3650 then
    raise exception 'days must be between 1 and 3650' using errcode = 'PT400', detail = 'invalid_days';
  end if;
  return (
    with recent as materialized (
      select present.answer is not null as is_answered, present.confidence, present.rating, present.verdict,
        present.milliseconds, present.prompt_tokens, present.completion_tokens,
        left(regexp_replace(lower(btrim(present.question)), '\s+', ' ', 'g'), 500) as question
      from rag.request_records as present
      where present.org_id = any (own) and present.created_at > now() - make_interval(days => days)
      order by present.created_at desc
      limit 100000
    ), unanswered as (
      select recent.question, count(*) as requests
      from recent
      where not recent.is_answered
      group by recent.question
      order by requests desc, recent.question
      limit 20
    )
    select jsonb_build_object(
      'requests', count(*),
      'answered', count(*) filter (where recent.is_answered),
      'withheld', count(*) filter (where not recent.is_answered),
      'confidence', jsonb_build_object('high', count(*) filter (where recent.confidence = 'high'),
        'medium', count(*) filter (where recent.confidence = 'medium'),
        'low', count(*) filter (where recent.confidence = 'low')),
      'rated_up', count(*) filter (where recent.rating = 'up'),
      'rated_down', count(*) filter (where recent.rating = 'down'),
      'labelled_right', count(*) filter (where recent.verdict = 'right'),
      'labelled_wrong', count(*) filter (where recent.verdict = 'wrong'),
      'p50_ms', percentile_disc(0.5) within group (order by recent.milliseconds),
      'p95_ms', percentile_disc(0.95) within group (order by recent.milliseconds),
      'prompt_tokens', coalesce(sum(recent.prompt_tokens), 0),
      'completion_tokens', coalesce(sum(recent.completion_tokens), 0),
      'unanswered', (select coalesce(jsonb_agg(to_jsonb(unanswered) order by unanswered.requests desc,
        unanswered.question), '[]') from unanswered))
    from recent);
end;
$$;

comment on function public.rag_summarize_records is
  'Counts of the records of the last days in the orgs that the caller administers, at most the latest 100,000: answered, '
  'withheld, by confidence, ratings, labels, milliseconds, tokens; unanswered: the 20 most frequent questions without an '
  'answer, in lower case. PT403 for a caller who administers no org.';
