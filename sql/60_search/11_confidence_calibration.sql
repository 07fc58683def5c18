-- Calibration of confidence by embedding model, or by embedding model and reranker (rag.settings). The deployer writes
-- it, or else the worker, fitted to the questions that the product ships; the functions read it once a minute.

create function public.rag_get_calibration(model text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('retrievals:read', 'chat:read');
  return (
    select jsonb_build_object('slope', fit -> 'slope', 'intercept', fit -> 'intercept', 'high', fit -> 'high',
      'medium', fit -> 'medium', 'ceiling_high', fit -> 'ceiling_high', 'ceiling_medium', fit -> 'ceiling_medium',
      'relevance', fit -> 'relevance', 'coverage_weight', fit -> 'coverage_weight', 'source', fit -> 'source',
      'other_languages', fit -> 'other_languages')
    from rag.settings
    cross join lateral (select settings.calibrations -> rag_get_calibration.model) as calibration (fit)
    where fit is not null);
end;
$$;

comment on function public.rag_get_calibration is
  'The deployment''s calibration of confidence for an embedding model, or "MODEL + RERANKER", or null.';

create policy "the worker writes calibrations" on rag.settings
  for update to rag_worker using (true) with check (true);

create function rag.needs_calibration(settings rag.settings, model text, question_set text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select model = any (settings.embedding_model || settings.other_embedding_models)
    and (not settings.calibrations ? model or coalesce(
      settings.calibrations -> model ->> 'source' = 'shipped_questions'
        and settings.calibrations -> model ->> 'question_set' <> question_set, false))
$$;

comment on function rag.needs_calibration is
  'Whether the model is one of the deployment''s and has no calibration, or one that is fitted to another set of shipped '
  'questions. The deployer''s own calibrations stay.';

create function public.rag_claim_calibration(model text, question_set text, lease_seconds integer default 1800)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.check_claim(1, lease_seconds);
  update rag.settings
  set calibration_claims = calibration_claims || jsonb_build_object(rag_claim_calibration.model, jsonb_build_object(
    'question_set', question_set, 'until', clock_timestamp() + interval '1 second' * lease_seconds))
  where rag.needs_calibration(settings, rag_claim_calibration.model, question_set)
    and not coalesce(
      calibration_claims -> rag_claim_calibration.model ->> 'question_set' = question_set
        and (calibration_claims -> rag_claim_calibration.model ->> 'until')::timestamptz >= clock_timestamp(), false);
  return found;
end;
$$;

comment on function public.rag_claim_calibration is
  'For the worker: whether the caller is the one that fits a calibration of the model to the shipped questions. No other caller '
  'is, for as long as the lease.';

create function public.rag_store_calibration(model text, question_set text, calibration jsonb)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.current_user_id();
  if (octet_length(question_set) <= 100 and (calibration is null or octet_length(calibration::text) <= 10000
    and rag.is_calibrations(jsonb_build_object(coalesce(rag_store_calibration.model, ''), calibration)))) is not true
  then
    raise exception 'calibration must be that of shipped questions' using errcode = 'PT400', detail = 'invalid_calibration';
  end if;
  if calibration is null then
    update rag.settings
    set calibration_claims = calibration_claims || jsonb_build_object(rag_store_calibration.model,
      jsonb_build_object('question_set', question_set, 'until', clock_timestamp() + interval '7 days'))
    where rag.needs_calibration(settings, rag_store_calibration.model, question_set);
  else
    update rag.settings
    set calibrations = calibrations || jsonb_build_object(rag_store_calibration.model, calibration
        || jsonb_build_object('source', 'shipped_questions', 'question_set', question_set)),
      calibration_claims = calibration_claims - rag_store_calibration.model
    where rag.needs_calibration(settings, rag_store_calibration.model, question_set);
  end if;
  return found;
end;
$$;

comment on function public.rag_store_calibration is
  'For the worker: store a calibration of the model, fitted to the shipped questions; null, if none fits, so that no worker tries '
  'again with these questions for a week. Returns whether it was stored.';
