-- Calibration of confidence by embedding model (rag.settings). The deployer writes it; the functions read it once a
-- minute.

create function public.rag_get_calibration(model text)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select rag.begin_call(), rag.require_scope('retrievals:read', 'chat:read');

  select settings.calibrations -> rag_get_calibration.model from rag.settings;
$$;

comment on function public.rag_get_calibration is
  'The deployment''s calibration of confidence for an embedding model, or null.';
