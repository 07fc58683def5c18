-- Calibration of confidence by embedding model, or by embedding model and reranker (rag.settings). The deployer writes
-- the calibration; the functions read it once a minute.

create function public.rag_get_calibration(model text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call(), rag.require_scope('retrievals:read', 'chat:read');
  return (
    select jsonb_build_object('slope', fit -> 'slope', 'intercept', fit -> 'intercept', 'high', fit -> 'high',
      'medium', fit -> 'medium', 'ceiling_high', fit -> 'ceiling_high', 'ceiling_medium', fit -> 'ceiling_medium',
      'relevance', fit -> 'relevance', 'coverage_weight', fit -> 'coverage_weight')
    from rag.settings
    cross join lateral (select settings.calibrations -> rag_get_calibration.model) as calibration (fit)
    where fit is not null);
end;
$$;

comment on function public.rag_get_calibration is
  'The deployment''s calibration of confidence for an embedding model, or "MODEL + RERANKER", or null.';
