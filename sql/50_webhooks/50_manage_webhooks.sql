-- Functions of an org's admins to create, list, change and delete webhooks. They run as their caller.

create type rag.webhook as (
  id uuid, org_id uuid, url text, description text, events text[], collection_id uuid, enabled boolean,
  failing_since timestamptz, created_at timestamptz, updated_at timestamptz
);

comment on type rag.webhook is 'A webhook as a list returns it, without its secret.';

create function public.rag_list_webhooks(webhook_id uuid default null)
returns setof rag.webhook
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select webhooks.id, webhooks.org_id, endpoints.url, endpoints.description, webhooks.events,
      webhooks.collection_id, webhooks.enabled, endpoints.failing_since, webhooks.created_at, webhooks.updated_at
    from rag.webhooks
    join rag.endpoints on endpoints.org_id = webhooks.org_id and endpoints.webhook_id = webhooks.id
    where webhooks.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_webhooks.webhook_id is null or webhooks.id = rag_list_webhooks.webhook_id)
    order by webhooks.created_at, webhooks.id;
  if not found and webhook_id is not null then
    raise exception 'There is no such webhook. Check its id.' using errcode = 'PT404', detail = 'webhook_not_found';
  end if;
end;
$$;

comment on function public.rag_list_webhooks is
  'The webhooks that the caller administers, or the one with the given id; PT404 for another id.';

create function rag.get_webhook(webhook_id uuid)
returns rag.webhook
language sql stable security invoker set search_path = ''
as $$
  -- Without an id: the nil UUID, which none has.
  select * from public.rag_list_webhooks(coalesce(get_webhook.webhook_id, '00000000-0000-0000-0000-000000000000'));
$$;

comment on function rag.get_webhook is 'The webhook of that id; PT404 for one that the caller does not administer.';

create function public.rag_create_webhook(
  url text, secret text, events text[], collection_id uuid default null, description text default null,
  org_id uuid default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.collections;
  made uuid;
begin
  perform rag.begin_call();
  if collection_id is not null then
    home := rag.get_collection(collection_id);
    org_id := coalesce(org_id, home.org_id);
  end if;
  org_id := rag.resolve_org(org_id);
  perform rag.require_admin(org_id);
  if home.org_id <> org_id then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.webhooks ' || org_id::text, 0));
  if 20 <= (select count(*) from rag.webhooks where webhooks.org_id = rag_create_webhook.org_id) then
    raise exception 'The org already has 20 webhooks. Delete one first.'
      using errcode = 'PT400', detail = 'too_many_webhooks';
  end if;
  insert into rag.webhooks (org_id, collection_id, events) values (org_id, collection_id, events)
  returning id into made;
  insert into rag.endpoints (org_id, webhook_id, url, description, secret)
  values (org_id, made, url, description, secret);
  return query select * from public.rag_list_webhooks(made);
end;
$$;

comment on function public.rag_create_webhook is
  'Create a webhook, in the caller''s only org unless one is given. collection_id: only events of that collection. '
  'PT403 for a caller who is no admin of the org, PT400 above twenty webhooks.';

create function public.rag_update_webhook(
  webhook_id uuid, url text default null, events text[] default null, description text default null,
  enabled boolean default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.webhook := rag.get_webhook(webhook_id);
  anew constant boolean := coalesce(enabled, url is not null);
begin
  update rag.webhooks as renewed
  set events = coalesce(rag_update_webhook.events, renewed.events),
    enabled = coalesce(rag_update_webhook.enabled, renewed.enabled), updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id;
  update rag.endpoints as renewed
  set url = coalesce(rag_update_webhook.url, renewed.url),
    description = coalesce(rag_update_webhook.description, renewed.description),
    failing_since = case when not anew then renewed.failing_since end,
    paused_until = case when not anew then renewed.paused_until end
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

comment on function public.rag_update_webhook is
  'Change a webhook. Null leaves a field as it is. A webhook that is enabled again has no failures.';

create function public.rag_rotate_webhook(webhook_id uuid, secret text, overlap_seconds integer default 86400)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.webhook := rag.get_webhook(webhook_id);
begin
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;
  update rag.endpoints as renewed
  set secret = rag_rotate_webhook.secret,
    old_secret_until = now() + make_interval(secs => overlap_seconds)
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

comment on function public.rag_rotate_webhook is
  'Create a new secret. The old secret signs too, until the given time has passed.';

create function public.rag_delete_webhook(webhook_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  gone constant rag.webhook := rag.get_webhook(webhook_id);
begin
  delete from rag.webhooks where webhooks.org_id = gone.org_id and webhooks.id = gone.id;
end;
$$;

comment on function public.rag_delete_webhook is 'Delete a webhook with its deliveries; PT404 for an unknown one.';
