-- The answer of guarded functions to a lock time-out. PostgREST answers SQLSTATE 55P03 (lock_not_available) with 500,
-- and only an exception handler in the called function changes that. So each function that begins with rag.begin_call or
-- rag.begin_write, which set the time-out, gets the handler here, around its block.

do $$
declare
  guarded record;
begin
  for guarded in
    select pg_get_functiondef(oid) as definition, prosrc as body,
      coalesce(substring(prosrc from '^\s*#variable_conflict \w+\n'), '') as directive
    from pg_proc
    where pronamespace = 'public'::regnamespace and prosrc ~ 'rag\.begin_(call|write)\(\)'
  loop
    execute replace(guarded.definition, guarded.body, guarded.directive || 'begin'
      || substr(guarded.body, greatest(length(guarded.directive), 1))
      || E'exception when lock_not_available then\n  perform rag.raise_locked();\nend;\n');
  end loop;
end;
$$;
