// Targets of bench/api.ts: the control plane's server, and a bare route with the same Fastify
// options that reads one row by its key through the same pool.
import { sql } from 'kysely';
import { listen, newServer } from '@berth/api/http/app.ts';
import { newId } from '@berth/api/store/database/ids.ts';
import { insertSandbox } from '@berth/api/store/sandboxes/sandboxes.ts';
import type { Database } from '@berth/api/store/database/schema.ts';
import { openBenchControlPlane } from './control-plane.ts';

interface MeasuredOrg {
  orgId: string;
  token: string;
  sandboxId: string;
}

interface ApiWorld {
  apiPort: number;
  barePort: number;
  /** The first org; none of its sandboxes is deleted. */
  live: MeasuredOrg;
  /** An org with as many live sandboxes and many deleted ones. */
  withDeleted: MeasuredOrg;
  postgresVersion: string;
  close(): Promise<void>;
}

/** Starts everything; the orgs have `live` and `deleted` sandboxes. */
export async function openApiWorld({ live, deleted }: { live: number; deleted: number }): Promise<ApiWorld> {
  const plane = await openBenchControlPlane();
  const { db, pool, first } = plane;
  const measured: MeasuredOrg[] = [];
  for (const { org, gone } of [
    { org: first, gone: 0 },
    { org: await plane.makeOrg(), gone: deleted },
  ])
    measured.push({ orgId: org.orgId, token: org.token, sandboxId: await fill(db, { ...org, live, deleted: gone }) });

  // Stands in for autovacuum, which would run some minutes later.
  await sql`vacuum analyze`.execute(db);
  const [liveOrg, withDeleted] = measured as [MeasuredOrg, MeasuredOrg];

  const { log, settings } = plane.context;
  const bare = newServer({ log, settings, entryPoints: [] });
  const bareRead = (path: string, statement: { name?: string; text: string }): void => {
    bare.route({
      method: 'GET',
      url: path,
      handler: async (request) =>
        (await pool.query({ ...statement, values: [(request.params as { id: string }).id] })).rows[0],
    });
  };
  const text = 'select * from sandbox where id = $1';
  bareRead('/sandboxes/:id', { text });
  bareRead('/prepared/:id', { name: 'read_sandbox', text });
  return {
    apiPort: await plane.serve(),
    barePort: (await listen(bare, '127.0.0.1', 0)).port,
    live: liveOrg,
    withDeleted,
    postgresVersion: plane.postgresVersion,
    close: async () => {
      await bare.close();
      await plane.close();
    },
  };
}

/** Inserts the row of a sandbox without a VM; returns its id. */
export async function insertReadySandbox(
  db: Database,
  org: { orgId: string; projectId: string; userId: string },
  host?: { id: string },
): Promise<string> {
  const { id } = await insertSandbox(db, {
    id: newId('sandbox'),
    org_id: org.orgId,
    project_id: org.projectId,
    host_id: host?.id ?? null,
    created_by: org.userId,
    name: 'measured',
    agent: 'agent_one',
    status: 'ready',
    epoch: 1,
    profile: 'agent-small',
    persistence_policy: 'sleep_resume',
    mode: 'persistent',
    metadata: JSON.stringify({ team: 'blue', build: 7 }),
    allocated_vcpu: 1,
    allocated_memory_gb: 1,
    allocated_disk_gb: 10,
  });
  return id;
}

/** Fills an org with sandboxes; the deleted ones are older. Returns the id of a live one. */
async function fill(
  db: Database,
  org: { orgId: string; projectId: string; userId: string; live: number; deleted: number },
): Promise<string> {
  const id = await insertReadySandbox(db, org);
  const copy = async (count: number, status: string): Promise<void> => {
    await sql`
      insert into sandbox
        (id, org_id, project_id, created_by, name, agent, status, epoch, profile, persistence_policy, mode, metadata,
        allocated_vcpu, allocated_memory_gb, allocated_disk_gb, created_at, deleted_at)
      select 'sbx_' || translate(substr(md5(random()::text), 1, 24), '01389', 'ghijk'), org_id, project_id, created_by,
        name, agent, ${status}, epoch, profile, persistence_policy, mode, metadata,
        allocated_vcpu, allocated_memory_gb, allocated_disk_gb,
        created_at - n * interval '1 second', case when ${status} = 'deleted' then now() end
      from sandbox, generate_series(1, ${count}::integer) n where id = ${id}`.execute(db);
  };
  await copy(org.live - 1, 'ready');
  await copy(org.deleted, 'deleted');
  return id;
}
