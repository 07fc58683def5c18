-- Functions of an org's admins to list deliveries and to send one again. They run as their caller.

create function public.rag_list_deliveries(
  webhook_id uuid, "limit" integer default 20, "offset" integer default 0
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  webhook constant rag.webhook := rag.get_webhook(webhook_id);
begin
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  return (
    with page as (
      select deliveries.id, deliveries.event_id, deliveries.event, deliveries.object, deliveries.state,
        deliveries.attempts, deliveries.response_status, deliveries.error, deliveries.created_at,
        deliveries.finished_at, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      order by deliveries.created_at desc, deliveries.id
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from rag.deliveries
        where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id),
      'deliveries', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_deliveries is
  '{"total", "deliveries": [...]}: sent and waiting deliveries, the newest first.';

create function public.rag_repeat_delivery(webhook_id uuid, delivery_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  webhook constant rag.webhook := rag.get_webhook(webhook_id);
begin
  if not webhook.enabled then
    raise exception 'The webhook is disabled. Enable it first.' using errcode = 'PT409', detail = 'webhook_disabled';
  end if;
  update rag.deliveries
  set state = 'waiting', attempts = 0, due_at = now(), response_status = null, error = null, finished_at = null
  where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
    and deliveries.id = delivery_id and deliveries.state in ('done', 'failed');
  if found then
    return;
  elsif exists (
    select from rag.deliveries
    where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      and deliveries.id = delivery_id)
  then
    raise exception 'The delivery is still in progress. Please wait until it ends.'
      using errcode = 'PT409', detail = 'delivery_under_way';
  end if;
  raise exception 'There is no such delivery. Check its id.' using errcode = 'PT404', detail = 'delivery_not_found';
end;
$$;

comment on function public.rag_repeat_delivery is
  'Enqueue a finished delivery again, delivered or failed. PT404 for an unknown delivery, PT409 for one that is not '
  'finished, or whose webhook is disabled.';
