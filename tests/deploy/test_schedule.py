"""The schedule in docs/deploy.md by which the database calls the worker.

The local Postgres has neither pg_cron nor pg_net: functions with their signatures record each call.
"""

import httpx
import psycopg

from local import ROOT
from local.stack import Stack
from tests.verify.test_run import sql_of

STAND_INS = """
  create schema cron; create schema net;
  create table cron.job (command text);
  create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql as
    'insert into cron.job values ($3) returning 1';
  create table net.calls (url text, headers jsonb);
  create function net.http_post(
    url text, body jsonb default '{}', params jsonb default '{}',
    headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds int default 5000
  ) returns bigint language sql as 'insert into net.calls values ($1, $4) returning 1';
  grant usage on schema cron, net to postgres; grant all on cron.job, net.calls to postgres;
"""


def test_the_documented_schedule_calls_the_worker_with_the_token_in_vault(stack: Stack):
    token, (schedule,) = stack.state.worker_token, sql_of("deploy.md", "The worker")
    with psycopg.connect(stack.database_url("supabase_admin")) as connection:
        connection.execute(STAND_INS.encode())
        connection.execute((ROOT / "tests" / "vault.sql").read_bytes())
        connection.execute("set local role postgres")
        connection.execute(schedule.replace("<RAG_WORKER_TOKEN>", token).encode())
        ((command,),) = connection.execute("select command from cron.job").fetchall()
        assert token not in command
        connection.execute(command.encode())
        ((url, headers),) = connection.execute("select url, headers from net.calls").fetchall()
        connection.rollback()
    assert headers == {"Authorization": f"Bearer {token}"}
    response = httpx.post(url.replace("https://…", stack.url), json={}, headers=headers)
    assert (response.status_code, response.json()["idle"]) == (200, True)
