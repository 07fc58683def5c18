-- Secrets in Supabase Vault, where the project has it: those of webhooks and the credentials of sources. Vault encrypts them
-- in tables, backups and replicas. For each secret, its table has a column and a column …_id for the id in Vault, of which
-- one is null; without Vault the table has the secret itself.
--
-- These three functions run as their owner, because Vault grants its functions to no user. Users cannot call them: two are
-- triggers, and the worker's role alone executes the third. They touch no table of schema rag, and of Vault only secrets
-- whose name begins with "rag.".

create function rag.store_in_vault()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  has_vault constant boolean := coalesce(
    has_function_privilege(to_regprocedure('vault.create_secret(text,text,text,uuid)'), 'execute'), false);
  field text;
  content text;
begin
  foreach field in array tg_argv loop
    content := to_jsonb(new) ->> field;
    if content is not null and has_vault then
      new := jsonb_populate_record(new, jsonb_build_object(field, null, field || '_id',
        vault.create_secret(content, format('rag.%s.%s %s', tg_table_name, field, gen_random_uuid()))));
    elsif content is not null then
      -- The previous secret may be in a Vault that was removed.
      new := jsonb_populate_record(new, jsonb_build_object(field || '_id', null));
    end if;
  end loop;
  return new;
end;
$$;

comment on function rag.store_in_vault is
  'Trigger that moves the named columns to Supabase Vault, if the project has it; else the new text replaces an id in Vault. '
  'It runs as its owner, to whom alone Vault grants this.';

create function rag.erase_from_vault()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  field text;
  secret_id uuid;
begin
  if to_regclass('vault.secrets') is null then
    -- Vault was removed, and its secrets with it.
    return null;
  end if;
  foreach field in array tg_argv loop
    secret_id := to_jsonb(old) ->> (field || '_id');
    -- A rotated secret has become the old one.
    if secret_id is not null
      and not exists (select from jsonb_each_text(to_jsonb(new)) as present where present.value = secret_id::text) then
      delete from vault.secrets where secrets.id = secret_id and secrets.name like 'rag.%';
    end if;
  end loop;
  return null;
end;
$$;

comment on function rag.erase_from_vault is
  'Trigger that deletes a row''s secrets from Supabase Vault, with the row or when they are replaced, if the project '
  'has it. It runs as its owner, to whom alone Vault grants this.';

create function rag.secret_in_vault(secret_id uuid)
returns text
language plpgsql stable strict security definer set search_path = ''
as $$
begin
  return (
    select decrypted_secrets.decrypted_secret
    from vault.decrypted_secrets
    where decrypted_secrets.id = secret_in_vault.secret_id and decrypted_secrets.name like 'rag.%');
exception when others then
  -- Another project's key encrypted it, or Vault was removed: the claims of all others go on.
  return null;
end;
$$;

comment on function rag.secret_in_vault is
  'A secret of this schema in Supabase Vault, for the worker alone; null if it cannot be read. It runs as its owner, to whom '
  'alone Vault grants this.';
