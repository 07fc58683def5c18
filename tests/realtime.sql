-- Stands in for the schema of Supabase Realtime: its table of messages and its function to send, without a server.
create schema realtime;
grant usage on schema realtime to postgres, anon, authenticated, service_role;
create table realtime.messages (
  id uuid not null default gen_random_uuid(), topic text not null, extension text not null, payload jsonb, event text,
  private boolean default false, updated_at timestamp not null default now(), inserted_at timestamp not null default now());
alter table realtime.messages enable row level security;
alter table realtime.messages owner to postgres;
grant select, insert, update on realtime.messages to anon, authenticated, service_role;
create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql as $$
begin
  perform set_config('realtime.topic', topic, true);
  insert into realtime.messages (payload, event, topic, private, extension)
  values (payload, event, topic, private, 'broadcast');
end;
$$;
