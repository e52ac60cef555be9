// Time of a page of agent sessions: of an org with few sessions, and of one with many, in turns.
import { sql } from 'kysely';
import { AGENT_SESSIONS_PAGE } from '@berth/contract/route/limits.ts';
import type { Database } from '@berth/api/store/database/schema.ts';
import { insertReadySandbox } from '../api/world.ts';
import { openBenchControlPlane, type BenchOrg } from '../api/control-plane.ts';
import { JsonCaller } from '../world/client.ts';
import { timed } from '../world/installation.ts';
import { figureOf, type Figure } from '../world/statistics.ts';

const FEW = 100;
const WARM_UP_ROUNDS = 50;

interface DiscoveryFigures {
  few: Figure;
  many: Figure;
}

export async function measureDiscovery(many: number, rounds: number): Promise<DiscoveryFigures> {
  const plane = await openBenchControlPlane();
  try {
    const orgs = [
      { org: plane.first, sessions: FEW, ms: [] as number[] },
      { org: await plane.makeOrg(), sessions: many, ms: [] as number[] },
    ];
    for (const { org, sessions } of orgs) await fill(plane.db, org, sessions);
    await sql`vacuum analyze`.execute(plane.db);

    const port = await plane.serve();
    const targets = orgs.map(({ org: { token }, ms }) => {
      return { ms, caller: new JsonCaller({ address: '127.0.0.1', port, token }) };
    });
    const path = `/v1/agent-sessions?limit=${AGENT_SESSIONS_PAGE.default}`;
    for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
      for (const { caller, ms } of round % 2 === 0 ? targets : targets.toReversed()) {
        const took = await timed(() => caller.call('GET', path));
        if (round >= 0) ms.push(took);
      }
    }
    for (const { caller } of targets) caller.close();
    const [few = [], more = []] = orgs.map(({ ms }) => ms);
    return { few: figureOf(few), many: figureOf(more) };
  } finally {
    await plane.close();
  }
}

/** Gives the org sessions of one sandbox, each with two turns. */
async function fill(db: Database, org: BenchOrg, count: number): Promise<void> {
  const { orgId, projectId, userId } = org;
  const id = await insertReadySandbox(db, org);
  const name = (n: unknown) => sql`'ags_' || substr(md5(${orgId} || ${n}), 1, 20)`;
  await sql`
    insert into agent_session (id, org_id, project_id, sandbox_id, agent, surface, bridge_state, created_at)
    select ${name(sql`n`)}, ${orgId}, ${projectId}, ${id}, 'agent_one', 'managed', 'stopped',
      now() - n * interval '1 second'
    from generate_series(1, ${count}::integer) n`.execute(db);
  await sql`
    insert into agent_turn (id, session_id, sandbox_id, caller_kind, caller_id, caller_user_id, text_hmac, state,
      started_at, ended_at)
    select 'trn_' || substr(md5(session.id || t), 1, 20), session.id, ${id}, 'api_key', 'key', ${userId}, '',
      'completed', now(), now()
    from agent_session session, generate_series(1, 2) t where session.org_id = ${orgId}`.execute(db);
}
